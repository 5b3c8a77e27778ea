// SPDX-License-Identifier: Apache-2.0
#include "cli/monitor.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/exit_code.h"
#include "cli/messages.h"
#include "cli/monitor_view.h"
#include "cli/target.h"
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

// Two descriptors per watched process: a tree of 1000 needs more than the usual 1024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);  // refused: handles open per read instead
  }
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
  // Sleeps until `due_ns`; false when watching is over.
  bool wait_until(std::int64_t due_ns);
  bool handle_signals();
  void wait_for_command();
  void finish();

  const MonitorOptions& options_;
  const SystemClock clock_;
  const std::int64_t start_ns_;
  std::optional<monitor::SignalInbox> inbox_;
  std::optional<monitor::OutputRelay> relay_;
  std::optional<monitor::LogFollower> log_;
  std::optional<monitor::LaunchedCommand> command_;
  std::unique_ptr<monitor::ProcessSource> source_;
  std::unique_ptr<monitor::Session> session_;
  std::unique_ptr<recording::Recorder> recorder_;
  std::unique_ptr<MonitorView> view_;             // nullptr once nobody reads it any more
  std::unordered_map<pid_t, int> wait_statuses_;  // of our own children
};

Status MonitorRun::prepare() {
  auto inbox = monitor::SignalInbox::open(wraps_command() ? monitor::SignalInbox::For::kCommand
                                                          : monitor::SignalInbox::For::kStop);
  if (!inbox) {
    return inbox.error();
  }
  inbox_.emplace(*std::move(inbox));
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
    if (!target.note.empty()) {
      print_note(target.note);
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
  const int lines_fd = wraps_command() ? STDERR_FILENO : STDOUT_FILENO;
  view_ = options_.json ? make_json_view(STDOUT_FILENO) : make_plain_view(lines_fd);
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
  if (!view_->begin(info)) {
    view_.reset();
  }
  if (recorder_ == nullptr) {
    return;
  }
  if (const Status begun = recorder_->begin(info); !begun) {
    print_error(begun.error(), "watching goes on without recording");
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
  std::vector<ProcessRecord> ended = session_->take_ended();
  for (ProcessRecord& process : ended) {
    if (const auto it = wait_statuses_.find(process.key.pid); it != wait_statuses_.end()) {
      process.exit_status = it->second;
    }
  }
  const ProcessLookup lookup = [&](const ProcessKey& key) -> const ProcessRecord* {
    const auto it = std::find_if(ended.begin(), ended.end(),
                                 [&](const ProcessRecord& record) { return record.key == key; });
    return it != ended.end() ? &*it : session_->sampler().find(key);
  };
  const ProcessRecord* trainer = session_->sampler().trainer();
  const ProcessKey trainer_key = trainer == nullptr ? ProcessKey{} : trainer->key;
  if (view_ != nullptr && !view_->tick(tick, trainer_key, lookup)) {
    view_.reset();
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
    print_error(*error, "watching goes on without recording; what was written is readable");
  }
}

// Takes in what has come; false when we are told to stop.
bool MonitorRun::handle_signals() {
  while (const auto signal = inbox_->next()) {
    if (!command_) {
      return false;
    }
    if (signal->number == SIGWINCH && relay_) {
      relay_->copy_window_size();
    }
    command_->handle(*signal);
    for (const monitor::ReapedChild& child : command_->take_reaped()) {
      wait_statuses_[child.pid] = child.wait_status;
    }
  }
  return !command_ || command_->running();
}

bool MonitorRun::wait_until(std::int64_t due_ns) {
  while (true) {
    const std::int64_t left = due_ns - clock_.monotonic_ns();
    if (left <= 0) {
      return true;
    }
    timespec timeout{left / kNsPerSecond, left % kNsPerSecond};
    pollfd waiting{inbox_->fd(), POLLIN, 0};
    const int ready = ::ppoll(&waiting, 1, &timeout, nullptr);
    if (ready > 0 && !handle_signals()) {
      return false;
    }
    if (ready < 0 && errno != EINTR) {
      return false;
    }
  }
}

void MonitorRun::watch() {
  const std::int64_t end_ns = options_.duration_ns ? start_ns_ + *options_.duration_ns : INT64_MAX;
  std::int64_t due = clock_.monotonic_ns();
  while (true) {
    const bool somebody_left = look(due);
    if (!somebody_left || due >= end_ns || (view_ == nullptr && !wraps_command() && !recorder_)) {
      return;
    }
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

void MonitorRun::finish() {
  if (relay_ && !(command_ && command_->running())) {
    relay_->finish();
  }
  if (view_ != nullptr) {
    (void)view_->end(session_->summary());
  }
  if (recorder_ == nullptr) {
    return;
  }
  const Status ended = recorder_->end(to_seconds(clock_.monotonic_ns() - start_ns_));
  if (!ended) {
    print_error(ended.error(), "what was written before is readable");
    return;
  }
  const auto stats = recorder_->stats();
  print_note(fmt::format("recorded {} samples in {}", stats.ticks_written, options_.output));
}

// Watching is over, the command is not: it must not notice.
void MonitorRun::wait_for_command() {
  if (command_ && command_->running()) {
    print_note("watching has ended; waiting for the command");
    while (wait_until(clock_.monotonic_ns() + 3600 * kNsPerSecond)) {
    }
    if (relay_) {
      relay_->finish();
    }
  }
}

int MonitorRun::run() {
  if (const Status prepared = prepare(); !prepared) {
    const bool usage = prepared.error().code == Errc::kUsage;
    print_error(prepared.error(), usage ? "see tidemark monitor --help" : "");
    wait_for_command();  // it may have started; whatever we cannot do, it runs on
    return command_ ? command_->exit_code().value_or(kExitTarget)
                    : (usage ? kExitUsage : kExitTarget);
  }
  start_recording();
  watch();
  finish();
  wait_for_command();
  return command_ ? command_->exit_code().value_or(kExitTarget) : kExitOk;
}

}  // namespace

int run_monitor(const MonitorOptions& options) { return MonitorRun(options).run(); }

}  // namespace tidemark::cli
