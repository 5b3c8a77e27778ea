// SPDX-License-Identifier: Apache-2.0
#include "live/watch.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/io.h"
#include "common/messages.h"
#include "common/redact.h"
#include "common/units.h"
#include "common/version.h"
#include "live/command_run.h"
#include "live/find.h"
#include "live/job_output.h"
#include "live/run_recording.h"
#include "live/target.h"

namespace tidemark::live {
namespace {

// For the output of a command that has just ended to come to its end by itself.
constexpr std::int64_t kSettleNs = kNsPerSecond / 5;
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

// One run of watch() with its output open.
class Watch {
 public:
  // All outlive it.
  Watch(const WatchOptions& options, WatchHandler& handler, WatchSystem& system,
        WatchOutput& output)
      : options_(options),
        handler_(handler),
        policy_(handler.policy()),
        system_(system),
        output_(output),
        start_ns_(system.clock().monotonic_ns()),
        command_(system, handler, output),
        recording_(options, output) {}

  int run();

 private:
  Status prepare();
  Result<monitor::TreeRoots> find_target();
  Status launch();
  Status start_session(monitor::TreeRoots roots);
  void begin();
  void begin_recording();
  RunInfo describe() const;

  void loop();
  bool sample(std::int64_t due_ns);
  void complete(Tick& tick, std::vector<ProcessRecord>& exited);
  void pass_on_limit();
  std::vector<LossRecord> take_losses();

  enum class Wake { kDue, kSignal, kEvent };
  // Sleeps until `due_ns`, a signal, until one of two descriptors (-1: none) is readable, or until
  // the user of the view has done something.
  Wake sleep_until(std::int64_t due_ns, int event_fd = -1, int other_event_fd = -1);
  // Sleeps until `due_ns`; false when watching is over.
  bool wait_until(std::int64_t due_ns);
  void handle_signals();
  bool is_worth_watching() const;
  bool waits_for_tree();
  // The command has ended, and others still have its output open or it is not all written.
  bool output_is_open() const { return !command_.running() && job_output_->is_open(); }
  void report_open_output();
  void settle_output();
  void wait_for_command();
  void finish();

  void check_lines();
  void handle_view_input();
  void end_view();
  int finish_output(int own_code);

  std::int64_t now_ns() const { return system_.clock().monotonic_ns(); }

  const WatchOptions& options_;
  WatchHandler& handler_;
  const WatchPolicy policy_;
  WatchSystem& system_;
  WatchOutput& output_;
  const std::int64_t start_ns_;
  std::optional<JobOutput> job_output_;
  CommandRun command_;
  RunRecording recording_;
  std::unique_ptr<monitor::ProcessSource> source_;
  std::unique_ptr<monitor::Session> session_;
  std::vector<RecordingSink*> sinks_;
  std::unique_ptr<WatchView> view_;         // nullptr once nobody reads it any more
  std::optional<monitor::NoPick> no_pick_;  // why --find-training found nobody
  std::string step_lines_;                  // what those look like in which steps were recognised
  std::uint64_t marks_ = 0;
  std::optional<std::uint64_t> limit_bytes_;  // that the view knows of
  bool is_waiting_for_tree_ = false;          // with what is left of the tree
  bool told_to_stop_ = false;
  bool reported_open_output_ = false;
  bool reported_lost_lines_ = false;
};

Status Watch::prepare() {
  TIDEMARK_TRY_ASSIGN(source_, system_.open_processes());
  TIDEMARK_TRY_ASSIGN(auto roots, find_target());
  TIDEMARK_TRY_ASSIGN(auto job_output, JobOutput::open(options_, system_.clock(), start_ns_));
  job_output_.emplace(std::move(job_output));
  TIDEMARK_TRY(recording_.create());
  if (!options_.target.command.empty()) {
    TIDEMARK_TRY(launch());
    roots = roots_of_command(command_.key(), system_.session_options().sampler.proc_root);
  }
  raise_descriptor_limit();  // after the launch: the command keeps the limit that it was given
  return start_session(std::move(roots));
}

Result<monitor::TreeRoots> Watch::find_target() {
  if (!options_.target.command.empty()) {
    return monitor::TreeRoots{};  // see launch()
  }
  TIDEMARK_TRY_ASSIGN(auto target, resolve_target(options_.target, *source_,
                                                  system_.session_options().sampler.proc_root));
  if (target.no_pick) {
    no_pick_ = std::move(target.no_pick);
    return Error{Errc::kNotFound, no_pick_->what};
  }
  if (!target.note.empty()) {
    output_.note(target.note);
  }
  return std::move(target.roots);
}

Status Watch::launch() {
  LaunchOptions options;
  options.argv = options_.target.command;
  job_output_->redirect(options);
  TIDEMARK_TRY(handler_.on_launch(options));
  TIDEMARK_TRY(command_.start(options, options_.end_after_ns));
  job_output_->on_command_start();
  return ok();
}

Status Watch::start_session(monitor::TreeRoots roots) {
  monitor::SessionOptions options = system_.session_options();
  options.sampler.roots = std::move(roots);
  options.sampler.pss = options_.pss;
  options.sampler.redact = options_.redact;
  options.start_ns = start_ns_;
  options.interval_ns = options_.interval_ns;
  options.warn = options_.warn;
  options.warn_growth = options_.warn_growth;
  TIDEMARK_TRY_ASSIGN(session_,
                      monitor::Session::start(std::move(options), *source_, system_.clock()));
  view_ = handler_.make_view(output_.lines());
  output_.set_listener(
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
  handler_.on_start(info, output_);
  sinks_ = handler_.sinks();
  if (options_.also != nullptr) {
    sinks_.push_back(options_.also);
  }
  for (RecordingSink* sink : sinks_) {
    (void)sink->begin(info);  // there is no file behind it
  }
  view_->on_start(info);
  limit_bytes_ = info.limit_bytes;
  for (const std::string& note : session_->notes()) {
    output_.note("note: " + note);
  }
  if (!session_->no_gpu().empty() && policy_.reports_missing_gpu) {
    output_.note("note: " + session_->no_gpu());
  }
}

// Before the first tick is shown: a target that is refused at its sight leaves no run file.
void Watch::begin_recording() {
  if (recording_.has_begun()) {
    return;
  }
  if (handler_.has_refused()) {
    recording_.cancel();
  }
  recording_.begin(describe());
}

// What this side of the tool has lost since the last call.
std::vector<LossRecord> Watch::take_losses() {
  std::vector<LossRecord> losses;
  const monitor::StepLosses lost = job_output_->take_lost();
  if (lost.steps > 0) {
    losses.push_back({0, LossKind::kStepsLost, lost.steps});
  }
  if (lost.lines > 0) {
    losses.push_back({0, LossKind::kStepLinesLost, lost.lines});
    if (!std::exchange(reported_lost_lines_, true)) {
      output_.note(
          "note: --step-regex would take too long on a line of the log; steps in such lines are "
          "not seen. A pattern without nested repeats is faster");
    }
  }
  if (const std::uint64_t dropped = output_.take_dropped(); dropped > 0) {
    losses.push_back({0, LossKind::kLinesDropped, dropped});
  }
  return losses;
}

// What the session does not know: the user's marks, how processes ended, and what the handler adds.
void Watch::complete(Tick& tick, std::vector<ProcessRecord>& exited) {
  if (view_ != nullptr) {
    for (const std::string& mark : view_->take_marks()) {
      tick.events.push_back(
          {tick.t_s, EventKind::kMark, {}, mark.empty() ? fmt::format("mark {}", ++marks_) : mark});
    }
  }
  const auto& statuses = command_.wait_statuses();
  for (EventRecord& event : tick.events) {
    const auto it = statuses.find(event.key.pid);
    if (event.kind == EventKind::kExit && it != statuses.end()) {
      event.detail += exit_text(it->second);
    }
  }
  for (ProcessRecord& process : exited) {
    if (const auto it = statuses.find(process.key.pid); it != statuses.end()) {
      process.exit_status = it->second;
    }
  }
  command_.forget_wait_statuses();
  handler_.add_to_tick(tick);
}

// One tick; false when nobody is left to watch.
bool Watch::sample(std::int64_t due_ns) {
  std::vector<MarkerRecord> steps = job_output_->take_steps();
  Tick tick = session_->sample(due_ns, std::move(steps), take_losses());
  for (const std::string& news : session_->take_news()) {
    output_.note("note: " + news);
  }
  if (job_output_->recognizes_steps(tick)) {
    output_.note("note: " + recognized_steps_text(job_output_->step_lines()));
  }
  std::vector<ProcessRecord> exited = session_->take_ended();
  complete(tick, exited);
  for (RecordingSink* sink : sinks_) {
    (void)sink->add(tick);
  }
  handler_.on_tick(tick, *session_);
  begin_recording();
  check_lines();
  if (view_ != nullptr) {
    pass_on_limit();
    const ProcessRecord* trainer = session_->sampler().trainer();
    const ProcessLookup lookup = [&](const ProcessKey& key) -> const ProcessRecord* {
      const auto it = std::find_if(exited.begin(), exited.end(),
                                   [&](const ProcessRecord& record) { return record.key == key; });
      return it != exited.end() ? &*it : session_->sampler().find(key);
    };
    view_->on_tick(tick, trainer == nullptr ? ProcessKey{} : trainer->key, lookup);
  }
  recording_.add(std::move(tick), exited);
  for (RecordingSink* sink : sinks_) {
    for (const ProcessRecord& process : exited) {
      (void)sink->process_ended(process);
    }
  }
  return !session_->sampler().finished();
}

void Watch::pass_on_limit() {
  const monitor::EffectiveLimit& limit = session_->limit();
  if (limit.bytes != limit_bytes_) {
    limit_bytes_ = limit.bytes;
    view_->on_limit(limit.bytes, limit.source);
  }
}

Watch::Wake Watch::sleep_until(std::int64_t due_ns, int event_fd, int other_event_fd) {
  while (true) {
    std::array<pollfd, 5> waiting = {{{handler_.event_fd(), POLLIN, 0},
                                      {event_fd, POLLIN, 0},
                                      {other_event_fd, POLLIN, 0},
                                      {view_ == nullptr ? -1 : view_->input_fd(), POLLIN, 0},
                                      {command_.stop_fd(), POLLIN, 0}}};
    const bool has_signal = system_.wait(due_ns, waiting);
    const bool is_for_handler = waiting[0].revents != 0;
    if (is_for_handler) {
      handler_.on_event();
    }
    if (has_signal) {
      return Wake::kSignal;
    }
    if (std::any_of(waiting.begin() + 1, waiting.end(),
                    [](const pollfd& each) { return each.revents != 0; })) {
      return Wake::kEvent;
    }
    if (!is_for_handler && now_ns() >= due_ns) {
      return Wake::kDue;
    }
  }
}

// Takes in what has come.
void Watch::handle_signals() {
  while (const auto signal = system_.next_signal()) {
    if (signal->asks_to_stop() && !command_.running()) {
      told_to_stop_ = true;
    }
    if (!command_.has_started()) {
      continue;
    }
    if (signal->number == SIGWINCH) {
      job_output_->copy_window_size();
    }
    if (command_.on_signal(*signal)) {
      handler_.on_command_exit();
      job_output_->on_command_exit(policy_.output_wait_ns);
    }
  }
}

bool Watch::is_worth_watching() const {
  if (told_to_stop_ || handler_.has_refused() || handler_.is_done()) {
    return false;
  }
  return command_.has_started()
             ? command_.running() || output_is_open() || command_.ran_out_of_time() ||
                   command_.delays_stop() || is_waiting_for_tree_
             : view_ != nullptr || recording_.is_wanted() || policy_.runs_unread;
}

// Nothing but what the command left behind is a reason to watch on.
bool Watch::waits_for_tree() {
  if (!command_.has_started() || command_.running() || told_to_stop_ ||
      command_.was_told_to_stop() || handler_.has_refused() || handler_.is_done() ||
      !handler_.waits_for_tree()) {
    return false;
  }
  if (!std::exchange(is_waiting_for_tree_, true)) {
    const std::size_t processes = session_->sampler().members().size();
    output_.note(
        fmt::format("the command has ended; {} of its processes {} on, and {} watched; "
                    "Ctrl-C leaves them",
                    processes, plural(processes, "runs", "run"), plural(processes, "is", "are")));
  }
  return true;
}

bool Watch::wait_until(std::int64_t due_ns) {
  while (true) {
    const std::int64_t wake_ns = std::min(due_ns, now_ns() + monitor::Session::kFindMarkerFilesNs);
    switch (sleep_until(wake_ns, output_.lines_ended_fd(),
                        output_is_open() ? job_output_->ended_fd() : -1)) {
      case Wake::kDue:
        if (wake_ns == due_ns) {
          return true;
        }
        break;
      case Wake::kSignal:
        handle_signals();
        break;
      case Wake::kEvent:
        check_lines();
        handle_view_input();
        command_.pass_on_stop();
        break;
    }
    if (!is_worth_watching()) {
      return false;
    }
    session_->find_marker_files();
  }
}

void Watch::loop() {
  const std::int64_t end_ns = options_.duration_ns ? start_ns_ + *options_.duration_ns : INT64_MAX;
  std::int64_t due = now_ns();
  while (true) {
    const bool somebody_left = sample(due);
    if (!somebody_left) {
      handle_signals();  // what is left are zombies: how they ended is known once they are reaped
      if (!command_.wait_statuses().empty()) {
        sample(now_ns());
      }
      return;
    }
    if (due >= end_ns || (!is_worth_watching() && !waits_for_tree())) {
      return;
    }
    command_.end_at_time_limit(session_->sampler().members());
    command_.pass_on_stop();
    report_open_output();
    // The next wake-up is on the grid of the interval; those that are missed already are skipped.
    const std::int64_t late = std::max<std::int64_t>(0, now_ns() - due);
    due += (late / options_.interval_ns + 1) * options_.interval_ns;
    due = std::min({due, end_ns, command_.time_limit_ns()});
    if (!wait_until(due)) {
      due = now_ns();  // the state at the end
    }
  }
}

void Watch::report_open_output() {
  const std::size_t processes = session_ ? session_->sampler().members().size() : 0;
  if (output_is_open() && processes > 0 && !is_waiting_for_tree_ &&
      !std::exchange(reported_open_output_, true)) {
    const auto wait_ns = policy_.output_wait_ns;
    output_.note(fmt::format(
        "the command has ended; {} of its processes still {} its output open; {}", processes,
        plural(processes, "has", "have"),
        wait_ns ? fmt::format("they are left in {}", format_duration(to_seconds(*wait_ns)))
                : "Ctrl-C leaves them"));
  }
}

// The output of a command that has ended is passed on to its end, unless we are told to stop.
void Watch::settle_output() {
  if (command_.running() || !job_output_) {
    return;
  }
  command_.forget_delayed_stop();
  if (job_output_->ended_fd() < 0) {
    return;
  }
  if (sleep_until(now_ns() + kSettleNs, job_output_->ended_fd()) != Wake::kEvent) {
    report_open_output();
  }
  while (output_is_open() && !told_to_stop_) {
    if (sleep_until(job_output_->end_ns(), job_output_->ended_fd()) == Wake::kSignal) {
      handle_signals();
    } else {
      handle_view_input();
    }
  }
  if (const Status closed = job_output_->close(); !closed) {
    output_.error(fmt::format("the command's output is incomplete: {}", closed.error().what));
  }
}

// Watching is over, the command is not: it must not notice.
void Watch::wait_for_command() {
  if (command_.running()) {
    output_.note("watching has ended; waiting for the command");
  }
  while (command_.running()) {
    if (sleep_until(command_.stop_end_ns()) == Wake::kSignal) {
      handle_signals();
      command_.forget_wait_statuses();
    }
    command_.pass_on_stop();
  }
  settle_output();
}

// Whoever closes the view has seen enough; a command that we run goes on.
void Watch::handle_view_input() {
  if (view_ == nullptr || view_->on_input()) {
    return;
  }
  if (!command_.running()) {
    told_to_stop_ = true;
    return;
  }
  end_view();
  output_.note(fmt::format(
      "the command runs on{}; Ctrl-C stops it",
      options_.command_output.empty() ? "" : ", its output goes to " + options_.command_output));
}

// What nobody can read need not be made.
void Watch::check_lines() {
  if (!output_.check_lines()) {
    view_.reset();
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
  const double end_s = to_seconds(now_ns() - start_ns_);
  for (RecordingSink* sink : sinks_) {
    (void)sink->end(end_s);
  }
  const bool may_stay =
      view_ != nullptr && !command_.has_started() && !told_to_stop_ && !options_.duration_ns;
  if (!may_stay || !view_->stays_open()) {
    end_view();
  }
  if (const std::string missing = job_output_->missing_steps(options_); !missing.empty()) {
    output_.note("note: " + missing);
  }
  for (const std::string& note :
       segment_notes(session_->shm_report(), session_->shm_used_bytes())) {
    output_.note(note);
  }
  output_.tell_dropped();
  recording_.end(end_s);
  while (view_ != nullptr && !told_to_stop_) {
    if (sleep_until(INT64_MAX) == Wake::kSignal) {
      handle_signals();
    } else {
      handle_view_input();
    }
  }
  end_view();
}

int Watch::finish_output(int own_code) {
  WatchEnding ending{own_code, {}, command_.was_told_to_stop(), command_.ran_out_of_time(), {}};
  if (command_.has_started()) {
    ending.command_status = command_.exit_code().value_or(kExitTarget);
    ending.step_lines = job_output_->step_lines();
  }
  handler_.on_end(ending, output_);
  told_to_stop_ = false;  // from here on it means: do not wait for a reader that stalls
  const std::int64_t end_ns = policy_.runs_unread ? now_ns() + kUnreadNs : INT64_MAX;
  output_.flush([&](int fd) {
    Wake wake = Wake::kSignal;
    while (wake == Wake::kSignal && !told_to_stop_) {
      wake = sleep_until(end_ns, fd);
      if (wake == Wake::kSignal) {
        handle_signals();
      }
    }
    return wake == Wake::kEvent;
  });
  if (own_code == kExitOk && (recording_.has_failed() || output_.is_incomplete())) {
    ending.own_code = kExitTarget;
  }
  return handler_.exit_code(ending);
}

int Watch::run() {
  if (const Status prepared = prepare(); !prepared) {
    const bool usage = prepared.error().code == Errc::kUsage;
    output_.say(
        no_pick_ ? no_pick_text(*no_pick_)
                 : error_text(prepared.error().what,
                              usage ? fmt::format("see tidemark {} --help", policy_.command) : ""));
    wait_for_command();  // it may have started; whatever we cannot do, it runs on
    return finish_output(usage ? kExitUsage : kExitTarget);
  }
  begin();
  loop();
  settle_output();
  const bool has_more = handler_.finish_watching();
  if (has_more || job_output_->has_late_steps()) {
    sample(now_ns());
  }
  finish();
  wait_for_command();
  return finish_output(kExitOk);
}

// Around a command stdout is the command's, or pure JSON.
Result<WatchOutput> open_output(const WatchOptions& options, WatchSystem& system) {
  const bool wraps_command = !options.target.command.empty();
  TIDEMARK_TRY(
      system.open_signals(wraps_command ? SignalInbox::For::kCommand : SignalInbox::For::kStop));
  return WatchOutput::open(system.stderr_fd(), wraps_command && !options.json
                                                   ? std::nullopt
                                                   : std::optional(system.stdout_fd()));
}

}  // namespace

int watch(const WatchOptions& options, WatchHandler& handler, WatchSystem* system) {
  const auto this_machine = system == nullptr ? make_watch_system() : nullptr;
  WatchSystem& used = system == nullptr ? *this_machine : *system;
  auto output = open_output(options, used);
  if (!output) {  // a closed stderr leaves nobody to tell
    (void)write_all(used.stderr_fd(), error_text(output.error().what));
    return kExitTarget;
  }
  return Watch(options, handler, used, *output).run();
}

}  // namespace tidemark::live
