// SPDX-License-Identifier: Apache-2.0
#include "cli/monitor.h"

#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/exit_code.h"
#include "cli/find.h"
#include "cli/messages.h"
#include "cli/monitor_output.h"
#include "cli/monitor_view.h"
#include "cli/target.h"
#include "common/check.h"
#include "common/io.h"
#include "monitor/launch.h"
#include "monitor/output_relay.h"
#include "monitor/procps_source.h"
#include "monitor/redact.h"
#include "monitor/session.h"
#include "monitor/signal_inbox.h"
#include "monitor/step_log.h"
#include "recording/recorder.h"

namespace tidemark::cli {
namespace {

constexpr std::string_view kIncomplete =
    "the recording is incomplete; what was written before is readable";
// For the output of a command that has just ended to come to its end by itself.
constexpr std::int64_t kSettleNs = kNsPerSecond / 5;

// Two descriptors per watched process: a tree of 1000 needs more than the usual 1024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);  // refused: handles open per read instead
  }
}

// ", killed by SIGKILL"; empty for a process that ended well.
std::string ending_text(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    const char* name = ::sigabbrev_np(number);
    return name != nullptr ? fmt::format(", killed by SIG{}", name)
                           : fmt::format(", killed by signal {}", number);
  }
  const int status = WEXITSTATUS(wait_status);
  return status == 0 ? "" : fmt::format(", exit status {}", status);
}

// One run of `tidemark monitor`, from the target to the summary.
class MonitorRun {
 public:
  explicit MonitorRun(const MonitorOptions& options)
      : options_(options), start_ns_(clock_.monotonic_ns()) {}

  int run();

 private:
  bool wraps_command() const { return !options_.target.command.empty(); }
  Status prepare();
  Status open_step_source();
  Status launch();
  Status start_session(monitor::TreeRoots roots);
  void start_recording();
  RunInfo describe() const;

  void watch();
  bool look(std::int64_t due_ns);
  std::vector<MarkerRecord> steps_from_log();
  void keep(const Tick& tick, std::vector<ProcessRecord> ended);

  enum class Wake { kDue, kSignal, kEvent };
  // Sleeps until `due_ns`, a signal, or until one of two descriptors (-1: none) is readable.
  Wake sleep_until(std::int64_t due_ns, int event_fd = -1, int other_event_fd = -1) const;
  // Sleeps until `due_ns`; false when watching is over.
  bool wait_until(std::int64_t due_ns);
  void handle_signals();
  bool is_worth_watching() const;
  bool command_runs() const { return command_ && command_->running(); }
  // The command has ended, and others still have its output open or it is not all written.
  bool output_lingers() const { return relay_ && !command_runs() && !relay_->at_end(); }
  void tell_who_lingers();
  void settle_output();
  void wait_for_command();
  void finish();

  void check_lines();
  int leave(int exit_code);

  const MonitorOptions& options_;
  const SystemClock clock_;
  const std::int64_t start_ns_;
  std::optional<monitor::SignalInbox> inbox_;
  std::optional<MonitorOutput> output_;
  std::optional<monitor::OutputRelay> relay_;
  std::optional<monitor::LogFollower> log_;
  std::optional<monitor::LaunchedCommand> command_;
  std::unique_ptr<monitor::ProcessSource> source_;
  std::unique_ptr<monitor::Session> session_;
  std::unique_ptr<recording::Recorder> recorder_;
  std::unique_ptr<MonitorView> view_;             // nullptr once nobody reads it any more
  std::unordered_map<pid_t, int> wait_statuses_;  // of our own children, since the last look
  std::optional<monitor::NoPick> no_pick_;        // why --find-training found nobody
  bool told_to_stop_ = false;
  bool told_who_lingers_ = false;
  bool has_failed_ = false;  // something that the user asked for is missing or incomplete
};

Status MonitorRun::prepare() {
  auto inbox = monitor::SignalInbox::open(wraps_command() ? monitor::SignalInbox::For::kCommand
                                                          : monitor::SignalInbox::For::kStop);
  if (!inbox) {
    return inbox.error();
  }
  inbox_.emplace(*std::move(inbox));
  // Around a command stdout is the command's, or pure JSON.
  auto output =
      MonitorOutput::open(wraps_command() && !options_.json ? MonitorOutput::Lines::kStderr
                                                            : MonitorOutput::Lines::kStdout);
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
  if (auto status = open_step_source(); !status) {
    return status;
  }
  // The run file first: a command must not start only to find that nothing can be recorded.
  if (!options_.output.empty()) {
    auto writer = recording::RunWriter::create(options_.output, {.replace = options_.force});
    if (!writer) {
      return writer.error();
    }
    recorder_ = std::make_unique<recording::Recorder>(*std::move(writer));
  }
  if (wraps_command()) {
    if (auto status = launch(); !status) {
      return status;
    }
    target.roots.children_of = ::getpid();
  }
  raise_descriptor_limit();  // after the launch: the command keeps the limit that it was given
  return start_session(std::move(target.roots));
}

Status MonitorRun::open_step_source() {
  if (options_.step_regex.empty()) {
    return ok();
  }
  auto pattern = monitor::StepPattern::compile(options_.step_regex);
  if (!pattern) {
    return pattern.error();
  }
  if (!options_.log_file.empty()) {
    auto log = monitor::LogFollower::open(options_.log_file, *std::move(pattern));
    if (!log) {
      return log.error();
    }
    log_.emplace(*std::move(log));
    return ok();
  }
  auto relay =
      monitor::OutputRelay::open({.pattern = *std::move(pattern),
                                  .stdout_sink = options_.json ? STDERR_FILENO : STDOUT_FILENO,
                                  .run_start_ns = start_ns_},
                                 clock_);
  if (!relay) {
    return relay.error();
  }
  relay_.emplace(*std::move(relay));
  return ok();
}

Status MonitorRun::launch() {
  monitor::LaunchOptions options;
  options.argv = options_.target.command;
  if (relay_) {
    options.stdout_fd = relay_->child_stdout();
    options.stderr_fd = relay_->child_stderr();
  } else if (options_.json) {
    options.stdout_fd = STDERR_FILENO;  // stdout is pure JSON
  }
  auto command = monitor::LaunchedCommand::start(options, *inbox_);
  if (!command) {
    return command.error();
  }
  command_.emplace(*std::move(command));
  if (relay_) {
    relay_->begin();
  }
  return ok();
}

Status MonitorRun::start_session(monitor::TreeRoots roots) {
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
  view_ = options_.json ? make_json_view(output_->lines()) : make_plain_view(output_->lines());
  return ok();
}

RunInfo MonitorRun::describe() const {
  RunInfo info = session_->describe();
  info.tool_version = version();
  const auto& command = options_.target.command;
  info.command =
      options_.redact ? monitor::redact_argv(command) : fmt::format("{}", fmt::join(command, " "));
  return info;
}

void MonitorRun::start_recording() {
  const RunInfo info = describe();
  view_->begin(info);
  if (recorder_ == nullptr) {
    return;
  }
  if (const Status begun = recorder_->begin(info); !begun) {
    output_->error(begun.error().what, "watching goes on without recording");
    has_failed_ = true;
    recorder_.reset();
  }
}

std::vector<MarkerRecord> MonitorRun::steps_from_log() {
  std::vector<MarkerRecord> steps;
  if (relay_) {
    relay_->take(steps);
  }
  if (log_) {
    log_->poll(to_seconds(clock_.monotonic_ns() - start_ns_), steps);
  }
  return steps;
}

// One tick; false when nobody is left to watch.
bool MonitorRun::look(std::int64_t due_ns) {
  Tick tick = session_->look(due_ns, steps_from_log());
  if (const std::uint64_t lost = relay_ ? relay_->take_lost() : 0; lost > 0) {
    tick.losses.push_back({tick.t_s, "steps_lost", lost});
  }
  if (const std::uint64_t dropped = output_->take_dropped(); dropped > 0) {
    tick.losses.push_back({tick.t_s, "lines_dropped", dropped});
  }
  for (EventRecord& event : tick.events) {
    const auto it = wait_statuses_.find(event.key.pid);
    if (event.kind == EventKind::kExit && it != wait_statuses_.end()) {
      event.detail += ending_text(it->second);
    }
  }
  std::vector<ProcessRecord> ended = session_->take_ended();
  for (ProcessRecord& process : ended) {
    if (const auto it = wait_statuses_.find(process.key.pid); it != wait_statuses_.end()) {
      process.exit_status = it->second;
    }
  }
  wait_statuses_.clear();
  const ProcessLookup lookup = [&](const ProcessKey& key) -> const ProcessRecord* {
    const auto it = std::find_if(ended.begin(), ended.end(),
                                 [&](const ProcessRecord& record) { return record.key == key; });
    return it != ended.end() ? &*it : session_->sampler().find(key);
  };
  const ProcessRecord* trainer = session_->sampler().trainer();
  const ProcessKey trainer_key = trainer == nullptr ? ProcessKey{} : trainer->key;
  check_lines();
  if (view_ != nullptr) {
    view_->tick(tick, trainer_key, lookup);
  }
  keep(tick, std::move(ended));
  return !session_->sampler().finished();
}

void MonitorRun::keep(const Tick& tick, std::vector<ProcessRecord> ended) {
  if (recorder_ == nullptr) {
    return;
  }
  // Neither waits for the disk; what went wrong there is told below, once.
  (void)recorder_->add(tick);
  for (const ProcessRecord& process : ended) {
    (void)recorder_->process_ended(process);
  }
  if (const auto error = recorder_->take_error()) {
    output_->error(error->what, kIncomplete);
    has_failed_ = true;
    recorder_.reset();
  }
}

MonitorRun::Wake MonitorRun::sleep_until(std::int64_t due_ns, int event_fd,
                                         int other_event_fd) const {
  while (true) {
    const std::int64_t left = std::max<std::int64_t>(0, due_ns - clock_.monotonic_ns());
    const timespec timeout{left / kNsPerSecond, left % kNsPerSecond};
    std::array<pollfd, 3> waiting = {
        {{inbox_->fd(), POLLIN, 0}, {event_fd, POLLIN, 0}, {other_event_fd, POLLIN, 0}}};
    const int ready = ::ppoll(waiting.data(), waiting.size(), &timeout, nullptr);
    TIDEMARK_CHECK(ready >= 0 || errno == EINTR, "poll takes three descriptors");
    if (ready > 0) {
      return waiting[0].revents != 0 ? Wake::kSignal : Wake::kEvent;
    }
    if (ready == 0) {
      return Wake::kDue;
    }
  }
}

// Takes in what has come.
void MonitorRun::handle_signals() {
  while (const auto signal = inbox_->next()) {
    if (!command_runs() && signal->asks_to_stop()) {
      told_to_stop_ = true;
    }
    if (!command_) {
      continue;
    }
    if (signal->number == SIGWINCH && relay_) {
      relay_->copy_window_size();
    }
    command_->handle(*signal);
    for (const monitor::ReapedChild& child : command_->take_reaped()) {
      wait_statuses_[child.pid] = child.wait_status;
    }
  }
}

bool MonitorRun::is_worth_watching() const {
  if (told_to_stop_) {
    return false;
  }
  return command_ ? command_runs() || output_lingers() : view_ != nullptr || recorder_ != nullptr;
}

bool MonitorRun::wait_until(std::int64_t due_ns) {
  while (true) {
    switch (sleep_until(due_ns, output_->lines_ended_fd(),
                        output_lingers() ? relay_->ended_fd() : -1)) {
      case Wake::kDue:
        return true;
      case Wake::kSignal:
        handle_signals();
        break;
      case Wake::kEvent:
        check_lines();
        break;
    }
    if (!is_worth_watching()) {
      return false;
    }
  }
}

void MonitorRun::watch() {
  const std::int64_t end_ns = options_.duration_ns ? start_ns_ + *options_.duration_ns : INT64_MAX;
  std::int64_t due = clock_.monotonic_ns();
  while (true) {
    const bool somebody_left = look(due);
    if (!somebody_left || due >= end_ns || !is_worth_watching()) {
      return;
    }
    tell_who_lingers();
    // The next wake-up is on the grid of the interval; those that are missed already are skipped.
    const std::int64_t late = std::max<std::int64_t>(0, clock_.monotonic_ns() - due);
    due += (late / options_.interval_ns + 1) * options_.interval_ns;
    due = std::min(due, end_ns);
    if (!wait_until(due)) {
      look(clock_.monotonic_ns());  // the state at the end
      return;
    }
  }
}

void MonitorRun::tell_who_lingers() {
  const std::size_t processes = session_ ? session_->sampler().members().size() : 0;
  if (output_lingers() && processes > 0 && !std::exchange(told_who_lingers_, true)) {
    output_->note(fmt::format(
        "the command has ended; {} of its processes still {} its output open; Ctrl-C leaves them",
        processes, processes == 1 ? "has" : "have"));
  }
}

// The output of a command that has ended is passed on to its end, unless we are told to stop.
void MonitorRun::settle_output() {
  if (!relay_ || command_runs()) {
    return;
  }
  if (sleep_until(clock_.monotonic_ns() + kSettleNs, relay_->ended_fd()) != Wake::kEvent) {
    tell_who_lingers();
  }
  while (output_lingers() && !told_to_stop_) {
    if (sleep_until(INT64_MAX, relay_->ended_fd()) == Wake::kSignal) {
      handle_signals();
    }
  }
  relay_->leave();
  if (const auto error = relay_->take_error()) {
    output_->error(fmt::format("the command's output is incomplete: {}", error->what));
  }
  relay_.reset();
}

void MonitorRun::finish() {
  if (view_ != nullptr) {
    view_->end(session_->summary());
    view_.reset();
  }
  output_->tell_dropped();
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
}

// Watching is over, the command is not: it must not notice.
void MonitorRun::wait_for_command() {
  if (command_runs()) {
    output_->note("watching has ended; waiting for the command");
  }
  while (command_runs()) {
    if (sleep_until(INT64_MAX) == Wake::kSignal) {
      handle_signals();
      wait_statuses_.clear();
    }
  }
  settle_output();
}

// What nobody can read need not be made.
void MonitorRun::check_lines() {
  if (!output_->check_lines()) {
    view_.reset();
  }
}

int MonitorRun::leave(int exit_code) {
  told_to_stop_ = false;  // from here on it means: do not wait for a reader that stalls
  output_->flush([this](int fd) {
    Wake wake = Wake::kDue;
    while (wake != Wake::kEvent && !told_to_stop_) {
      wake = sleep_until(INT64_MAX, fd);
      if (wake == Wake::kSignal) {
        handle_signals();
      }
    }
    return wake == Wake::kEvent;
  });
  if (command_) {
    return command_->exit_code().value_or(kExitTarget);
  }
  const bool failed = has_failed_ || output_->is_incomplete();
  return exit_code == kExitOk && failed ? kExitTarget : exit_code;
}

int MonitorRun::run() {
  if (const Status prepared = prepare(); !prepared) {
    const bool usage = prepared.error().code == Errc::kUsage;
    const std::string text =
        no_pick_ ? no_pick_text(*no_pick_)
                 : error_text(prepared.error().what, usage ? "see tidemark monitor --help" : "");
    if (!output_) {
      (void)write_all(STDERR_FILENO, text);  // a closed stderr leaves nobody to tell
      return kExitTarget;
    }
    output_->say(text);
    wait_for_command();  // it may have started; whatever we cannot do, it runs on
    return leave(usage ? kExitUsage : kExitTarget);
  }
  start_recording();
  watch();
  settle_output();
  finish();
  wait_for_command();
  return leave(kExitOk);
}

}  // namespace

int run_monitor(const MonitorOptions& options) { return MonitorRun(options).run(); }

}  // namespace tidemark::cli
