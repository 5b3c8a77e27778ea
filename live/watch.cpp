// SPDX-License-Identifier: Apache-2.0
#include "live/watch.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/io.h"
#include "common/messages.h"
#include "common/redact.h"
#include "common/version.h"
#include "live/find.h"
#include "live/target.h"
#include "monitor/procfs/process_source.h"

namespace tidemark::live {
namespace {

// For the reader of the last words of a command that has more to do than to be read.
constexpr std::int64_t kUnreadNs = 2 * kNsPerSecond;

// Two or three descriptors per watched process: a tree of 1000 needs more than the usual 1024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);  // refused: handles open per read instead
  }
}

}  // namespace

Status Watch::prepare() {
  auto inbox =
      SignalInbox::open(wraps_command() ? SignalInbox::For::kCommand : SignalInbox::For::kStop);
  if (!inbox) {
    return inbox.error();
  }
  inbox_.emplace(*std::move(inbox));
  // Around a command stdout is the command's, or pure JSON.
  auto output = WatchOutput::open(wraps_command() && !options_.json ? WatchOutput::Lines::kStderr
                                                                    : WatchOutput::Lines::kStdout);
  if (!output) {
    return output.error();
  }
  output_.emplace(*std::move(output));
  auto source = monitor::make_procps_source();
  if (!source) {
    return source.error();
  }
  source_ = *std::move(source);

  ResolvedTarget target;
  if (!wraps_command()) {
    auto resolved = resolve_target(options_.target, *source_);
    if (!resolved) {
      return resolved.error();
    }
    target = *std::move(resolved);
    if (target.no_pick) {
      no_pick_ = std::move(target.no_pick);
      return Error{Errc::kNotFound, no_pick_->what};
    }
    if (!target.note.empty()) {
      output_->note(target.note);
    }
  }
  if (!options_.command_output.empty()) {
    auto file = open_file(options_.command_output, O_WRONLY | O_APPEND);
    if (!file) {
      return file.error();
    }
    command_output_ = *std::move(file);
  }
  if (auto status = open_step_source(); !status) {
    return status;
  }
  // The run file first: a command must not start only to find that nothing can be recorded.
  if (!options_.output.empty()) {
    auto writer = recording::RunWriter::create(options_.output, {.replace = options_.force});
    if (writer) {
      recorder_ = std::make_unique<recording::Recorder>(*std::move(writer));
    } else if (options_.output_is_optional) {
      output_->error(writer.error().what, kUnrecorded);
      has_failed_ = true;
    } else {
      return writer.error();
    }
  }
  if (wraps_command()) {
    if (auto status = launch(); !status) {
      return status;
    }
    target.roots.children_of = ::getpid();
    target.roots.except = options_.helper;
  }
  raise_descriptor_limit();  // after the launch: the command keeps the limit that it was given
  return start_session(std::move(target.roots));
}

Status Watch::open_step_source() {
  if (options_.step_regex.empty()) {
    return ok();
  }
  auto pattern = monitor::StepPattern::compile(options_.step_regex);
  if (!pattern) {
    return Error{pattern.error().code, "--step-regex: " + pattern.error().what};
  }
  if (!options_.log_file.empty()) {
    auto log = monitor::LogFollower::open(options_.log_file, *std::move(pattern));
    if (!log) {
      return log.error();
    }
    log_.emplace(*std::move(log));
    return ok();
  }
  const int stderr_sink = command_output_ ? command_output_.get() : STDERR_FILENO;
  auto relay = OutputRelay::open(
      {.pattern = *std::move(pattern),
       .stdout_sink = options_.json || command_output_ ? stderr_sink : STDOUT_FILENO,
       .stderr_sink = stderr_sink,
       .run_start_ns = start_ns_},
      clock_);
  if (!relay) {
    return relay.error();
  }
  relay_.emplace(*std::move(relay));
  return ok();
}

Status Watch::launch() {
  LaunchOptions options;
  options.argv = options_.target.command;
  Fd no_input;
  if (command_output_) {
    auto opened = open_file("/dev/null", O_RDONLY);
    if (!opened) {
      return opened.error();
    }
    no_input = *std::move(opened);
    options.stdin_fd = no_input.get();
    options.stdout_fd = command_output_.get();
    options.stderr_fd = command_output_.get();
  }
  if (relay_) {
    options.stdout_fd = relay_->child_stdout();
    options.stderr_fd = relay_->child_stderr();
  } else if (options_.json) {
    options.stdout_fd = STDERR_FILENO;  // stdout is pure JSON
  }
  if (auto prepared = handler_.on_launch(options); !prepared) {
    return prepared;
  }
  auto command = LaunchedCommand::start(options, *inbox_);
  if (!command) {
    return command.error();
  }
  command_.emplace(*std::move(command));
  if (options_.end_after_ns) {
    ending_.emplace(clock_.monotonic_ns() + *options_.end_after_ns);
  }
  if (relay_) {
    relay_->begin();
  }
  return ok();
}

Status Watch::start_session(monitor::TreeRoots roots) {
  monitor::SessionOptions options;
  options.sampler.roots = std::move(roots);
  options.sampler.pss = options_.pss;
  options.sampler.redact = options_.redact;
  options.start_ns = start_ns_;
  options.interval_ns = options_.interval_ns;
  options.warn = options_.warn;
  options.warn_growth = options_.warn_growth;
  auto session = monitor::Session::start(std::move(options), *source_, clock_);
  if (!session) {
    return session.error();
  }
  session_ = *std::move(session);
  view_ = handler_.make_view(output_->lines());
  output_->set_listener(
      [this](const std::string& text) { return view_ != nullptr && view_->show_message(text); });
  return ok();
}

RunInfo Watch::describe() const {
  RunInfo info = session_->describe();
  info.tool_version = version();
  const auto& command = options_.target.command;
  info.command =
      options_.redact ? redact_argv(command) : fmt::format("{}", fmt::join(command, " "));
  return info;
}

void Watch::begin() {
  const RunInfo info = describe();
  handler_.on_start(info, *output_);
  view_->on_start(info);
  limit_bytes_ = info.limit_bytes;
  for (const std::string& note : session_->notes()) {
    output_->note("note: " + note);
  }
  if (!session_->no_gpu().empty() && policy_.reports_missing_gpu) {
    output_->note("note: " + session_->no_gpu());
  }
}

// Before the first tick is shown: a target that is refused at its sight leaves no run file.
void Watch::begin_recording() {
  if (recorder_ == nullptr || std::exchange(has_begun_recording_, true)) {
    return;
  }
  if (handler_.has_refused()) {
    recorder_.reset();
    return;
  }
  if (const Status begun = recorder_->begin(describe()); !begun) {
    output_->error(begun.error().what, kUnrecorded);
    has_failed_ = true;
    recorder_.reset();
  }
}

// Segments of shared memory that nobody holds: they outlive the job.
void Watch::report_unheld_segments() {
  const auto& report = session_->shm_report();
  if (!report) {
    return;
  }
  for (const monitor::ShmSegment& segment : report->largest_unheld) {
    const std::string owner = segment.owner_pid
                                  ? fmt::format(", made by pid {}{}", *segment.owner_pid,
                                                segment.owner_alive.value_or(true) ? "" : " (dead)")
                                  : "";
    output_->note(fmt::format("note: /dev/shm/{} holds {} and no process has it open{}",
                              segment.path, format_bytes(segment.allocated_bytes), owner));
  }
}

void Watch::end_view() {
  if (view_ != nullptr) {
    view_->on_end(session_->summary());
    view_.reset();
  }
}

void Watch::finish() {
  session_->add_losses(take_losses());
  const bool may_stay = view_ != nullptr && !command_ && !told_to_stop_ && !options_.duration_ns;
  if (!may_stay || !view_->stays_open()) {
    end_view();
  }
  report_unheld_segments();
  output_->tell_dropped();
  end_recording();
  while (view_ != nullptr && !told_to_stop_) {
    if (sleep_until(INT64_MAX) == Wake::kSignal) {
      handle_signals();
    } else {
      handle_view_input();
    }
  }
  end_view();
}

void Watch::end_recording() {
  if (recorder_ == nullptr) {
    return;
  }
  const Status ended = recorder_->end(to_seconds(clock_.monotonic_ns() - start_ns_));
  if (!ended) {
    output_->error(ended.error().what, kIncomplete);
    has_failed_ = true;
    return;
  }
  const auto stats = recorder_->stats();
  output_->note(fmt::format("recorded {} samples in {}", stats.ticks_written, options_.output));
  if (stats.ticks_dropped > 0) {
    output_->note(fmt::format("note: {} samples are missing in it: the disk was too slow",
                              stats.ticks_dropped));
  }
  if (!recorder_->is_one_file()) {
    output_->note(
        fmt::format("note: another program reads {0}: keep {0}-wal beside it", options_.output));
  }
}

int Watch::finish_output(int own_code) {
  WatchEnding ending{own_code, {}, command_was_told_to_stop_, ending_ && ending_->has_begun()};
  if (command_) {
    ending.command_status = command_->exit_code().value_or(kExitTarget);
  }
  handler_.on_end(ending, *output_);
  told_to_stop_ = false;  // from here on it means: do not wait for a reader that stalls
  const std::int64_t end_ns = policy_.runs_unread ? clock_.monotonic_ns() + kUnreadNs : INT64_MAX;
  output_->flush([&](int fd) {
    Wake wake = Wake::kSignal;
    while (wake == Wake::kSignal && !told_to_stop_) {
      wake = sleep_until(end_ns, fd);
      if (wake == Wake::kSignal) {
        handle_signals();
      }
    }
    return wake == Wake::kEvent;
  });
  if (own_code == kExitOk && (has_failed_ || output_->is_incomplete())) {
    ending.own_code = kExitTarget;
  }
  return handler_.exit_code(ending);
}

int Watch::run() {
  if (const Status prepared = prepare(); !prepared) {
    const bool usage = prepared.error().code == Errc::kUsage;
    const std::string text =
        no_pick_ ? no_pick_text(*no_pick_)
                 : error_text(prepared.error().what,
                              usage ? fmt::format("see tidemark {} --help", policy_.command) : "");
    if (!output_) {
      (void)write_all(STDERR_FILENO, text);  // a closed stderr leaves nobody to tell
      return kExitTarget;
    }
    output_->say(text);
    wait_for_command();  // it may have started; whatever we cannot do, it runs on
    return finish_output(usage ? kExitUsage : kExitTarget);
  }
  begin();
  watch();
  settle_output();
  const bool has_more = handler_.finish_watching();
  if (has_more || !late_steps_.empty()) {
    sample(clock_.monotonic_ns());
  }
  finish();
  wait_for_command();
  return finish_output(kExitOk);
}

}  // namespace tidemark::live
