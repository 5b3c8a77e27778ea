// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/check.h"
#include "live/watch.h"

namespace tidemark::live {
namespace {

// For the output of a command that has just ended to come to its end by itself.
constexpr std::int64_t kSettleNs = kNsPerSecond / 5;

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

}  // namespace

std::vector<MarkerRecord> Watch::steps_from_log() {
  std::vector<MarkerRecord> steps = std::exchange(late_steps_, {});
  if (relay_) {
    relay_->take(steps);
  }
  if (log_) {
    log_->poll(to_seconds(clock_.monotonic_ns() - start_ns_), steps);
  }
  return steps;
}

// What this side of the tool has lost since the last call.
std::vector<LossRecord> Watch::take_losses() {
  std::vector<LossRecord> losses;
  monitor::StepLosses lost = std::exchange(late_lost_, {});
  lost += relay_ ? relay_->take_lost() : monitor::StepLosses{};
  lost += log_ ? log_->take_lost() : monitor::StepLosses{};
  if (lost.steps > 0) {
    losses.push_back({0, LossKind::kStepsLost, lost.steps});
  }
  if (lost.lines > 0) {
    losses.push_back({0, LossKind::kStepLinesLost, lost.lines});
    if (!std::exchange(told_lost_lines_, true)) {
      output_->note(
          "note: --step-regex would take too long on a line of the log; steps in such lines are "
          "not seen. A pattern without nested repeats is faster");
    }
  }
  if (const std::uint64_t dropped = output_->take_dropped(); dropped > 0) {
    losses.push_back({0, LossKind::kLinesDropped, dropped});
  }
  return losses;
}

// One tick; false when nobody is left to watch.
bool Watch::sample(std::int64_t due_ns) {
  std::vector<MarkerRecord> steps = steps_from_log();
  Tick tick = session_->sample(due_ns, std::move(steps), take_losses());
  for (const std::string& news : session_->take_news()) {
    output_->note("note: " + news);
  }
  if (view_ != nullptr) {
    for (std::uint64_t new_marks = view_->take_marks(); new_marks > 0; --new_marks) {
      tick.events.push_back({tick.t_s, EventKind::kMark, {}, fmt::format("mark {}", ++marks_)});
    }
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
  handler_.add_to_tick(tick);
  handler_.on_tick(tick, *session_);
  begin_recording();
  check_lines();
  if (view_ != nullptr) {
    pass_on_limit();
    view_->on_tick(tick, trainer_key, lookup);
  }
  record(tick, ended);
  for (const ProcessRecord& process : ended) {
    handler_.on_process_exit(process);
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

void Watch::record(const Tick& tick, const std::vector<ProcessRecord>& ended) {
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

Watch::Wake Watch::sleep_until(std::int64_t due_ns, int event_fd, int other_event_fd) const {
  while (true) {
    const std::int64_t left = std::max<std::int64_t>(0, due_ns - clock_.monotonic_ns());
    const timespec timeout{left / kNsPerSecond, left % kNsPerSecond};
    const int view_fd = view_ == nullptr ? -1 : view_->input_fd();
    std::array<pollfd, 6> waiting = {{{inbox_->fd(), POLLIN, 0},
                                      {event_fd, POLLIN, 0},
                                      {other_event_fd, POLLIN, 0},
                                      {view_fd, POLLIN, 0},
                                      {handler_.event_fd(), POLLIN, 0},
                                      {stop_ ? stop_->fd() : -1, POLLIN, 0}}};
    int ready = ::ppoll(waiting.data(), waiting.size(), &timeout, nullptr);
    TIDEMARK_CHECK(ready >= 0 || errno == EINTR, "poll takes six descriptors");
    if (ready > 0 && waiting[4].revents != 0) {
      handler_.on_event();
      if (--ready == 0) {
        continue;
      }
    }
    if (ready > 0) {
      return waiting[0].revents != 0 ? Wake::kSignal : Wake::kEvent;
    }
    if (ready == 0) {
      return Wake::kDue;
    }
  }
}

// Takes in what has come.
void Watch::handle_signals() {
  while (const auto signal = inbox_->next()) {
    if (signal->asks_to_stop()) {
      (command_runs() ? command_was_told_to_stop_ : told_to_stop_) = true;
    }
    if (!command_) {
      continue;
    }
    if (signal->number == SIGWINCH && relay_) {
      relay_->copy_window_size();
    }
    const bool ran = command_runs();
    if (!delay_stop(*signal)) {
      command_->handle(*signal);
    }
    if (ran && !command_runs()) {
      handler_.on_command_exit();
      if (const auto wait_ns = policy_.output_wait_ns) {
        output_end_ns_ = clock_.monotonic_ns() + *wait_ns;
      }
    }
    for (const ReapedChild& child : command_->take_reaped()) {
      wait_statuses_[child.pid] = child.wait_status;
    }
  }
}

// A wrapper that ends by a signal leaves its trainer alone, and a signal from a process reaches the
// wrapper only. True: the command is told later.
bool Watch::delay_stop(const ReceivedSignal& signal) {
  if (!signal.asks_to_stop() || signal.from_kernel || !command_runs()) {
    return false;
  }
  if (stop_) {  // asked twice: no more patience
    stop_.reset();
    return false;
  }
  StopOrder order = handler_.stop_order();
  const bool includes_command = std::erase(order.first, command_->key()) > 0;
  const std::int64_t now_ns = clock_.monotonic_ns();
  stop_.emplace(order.first, signal.number, now_ns + order.patience_ns);
  if (stop_->is_over(now_ns)) {
    stop_.reset();
    return false;
  }
  stop_signal_ = includes_command ? std::nullopt : std::optional(signal);
  output_->note(fmt::format("told to stop: pid {} is told first, and has {} to end",
                            order.first.front().pid,
                            format_duration(to_seconds(order.patience_ns))));
  return !includes_command;
}

void Watch::pass_on_stop() {
  if (!stop_ || !stop_->is_over(clock_.monotonic_ns())) {
    return;
  }
  if (clock_.monotonic_ns() >= stop_->end_ns()) {
    output_->note("it has not ended in that time");
  }
  stop_.reset();
  if (const auto signal = std::exchange(stop_signal_, {})) {
    command_->handle(*signal);
  }
}

bool Watch::is_worth_watching() const {
  if (told_to_stop_ || handler_.has_refused()) {
    return false;
  }
  const bool is_being_ended = ending_ && ending_->has_begun();
  return command_
             ? command_runs() || output_is_open() || is_being_ended || stop_ || is_waiting_for_tree_
             : view_ != nullptr || recorder_ != nullptr || policy_.runs_unread;
}

// Nothing but what the command left behind is a reason to watch on.
bool Watch::waits_for_tree() {
  if (!command_ || command_runs() || told_to_stop_ || command_was_told_to_stop_ ||
      handler_.has_refused() || !handler_.waits_for_tree()) {
    return false;
  }
  if (!std::exchange(is_waiting_for_tree_, true)) {
    const std::size_t processes = session_->sampler().members().size();
    output_->note(
        fmt::format("the command has ended; {} of its processes {} on, and {} watched; "
                    "Ctrl-C leaves them",
                    processes, processes == 1 ? "runs" : "run", processes == 1 ? "is" : "are"));
  }
  return true;
}

bool Watch::wait_until(std::int64_t due_ns) {
  while (true) {
    const std::int64_t wake_ns =
        std::min(due_ns, clock_.monotonic_ns() + monitor::Session::kFindMarkerFilesNs);
    switch (sleep_until(wake_ns, output_->lines_ended_fd(),
                        output_is_open() ? relay_->ended_fd() : -1)) {
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
        pass_on_stop();
        break;
    }
    if (!is_worth_watching()) {
      return false;
    }
    session_->find_marker_files();
  }
}

void Watch::watch() {
  const std::int64_t end_ns = options_.duration_ns ? start_ns_ + *options_.duration_ns : INT64_MAX;
  std::int64_t due = clock_.monotonic_ns();
  while (true) {
    const bool somebody_left = sample(due);
    if (!somebody_left) {
      handle_signals();  // what is left are zombies: how they ended is known once they are reaped
      if (!wait_statuses_.empty()) {
        sample(clock_.monotonic_ns());
      }
      return;
    }
    if (due >= end_ns || (!is_worth_watching() && !waits_for_tree())) {
      return;
    }
    end_at_time_limit();
    pass_on_stop();
    report_open_output();
    // The next wake-up is on the grid of the interval; those that are missed already are skipped.
    const std::int64_t late = std::max<std::int64_t>(0, clock_.monotonic_ns() - due);
    due += (late / options_.interval_ns + 1) * options_.interval_ns;
    due = std::min({due, end_ns, ending_ ? ending_->due_ns() : INT64_MAX});
    if (!wait_until(due)) {
      due = clock_.monotonic_ns();  // the state at the end
    }
  }
}

// Of a command whose time is limited.
void Watch::end_at_time_limit() {
  if (!ending_) {
    return;
  }
  const bool had_begun = ending_->has_begun();
  const bool had_killed = ending_->had_to_kill();
  ending_->act(clock_.monotonic_ns(), session_->sampler().members());
  if (ending_->has_begun() && !had_begun) {
    output_->note("its time is over: the command is told to end");
    handler_.on_time_limit();
  }
  if (ending_->had_to_kill() && !had_killed) {
    output_->note("it did not end when told to: it is killed");
  }
}

void Watch::report_open_output() {
  const std::size_t processes = session_ ? session_->sampler().members().size() : 0;
  if (output_is_open() && processes > 0 && !is_waiting_for_tree_ &&
      !std::exchange(reported_open_output_, true)) {
    const auto wait_ns = policy_.output_wait_ns;
    output_->note(fmt::format(
        "the command has ended; {} of its processes still {} its output open; {}", processes,
        processes == 1 ? "has" : "have",
        wait_ns ? fmt::format("they are left in {}", format_duration(to_seconds(*wait_ns)))
                : "Ctrl-C leaves them"));
  }
}

// The output of a command that has ended is passed on to its end, unless we are told to stop.
void Watch::settle_output() {
  if (command_runs()) {
    return;
  }
  stop_.reset();
  if (!relay_) {
    return;
  }
  if (sleep_until(clock_.monotonic_ns() + kSettleNs, relay_->ended_fd()) != Wake::kEvent) {
    report_open_output();
  }
  while (output_is_open() && !told_to_stop_) {
    if (sleep_until(output_end_ns_, relay_->ended_fd()) == Wake::kSignal) {
      handle_signals();
    } else {
      handle_view_input();
    }
  }
  relay_->leave();
  if (const auto error = relay_->take_error()) {
    output_->error(fmt::format("the command's output is incomplete: {}", error->what));
  }
  relay_->take(late_steps_);
  late_lost_ += relay_->take_lost();
  relay_.reset();
}

// Watching is over, the command is not: it must not notice.
void Watch::wait_for_command() {
  if (command_runs()) {
    output_->note("watching has ended; waiting for the command");
  }
  while (command_runs()) {
    if (sleep_until(stop_ ? stop_->end_ns() : INT64_MAX) == Wake::kSignal) {
      handle_signals();
      wait_statuses_.clear();
    }
    pass_on_stop();
  }
  settle_output();
}

// Whoever closes the view has seen enough; a command that we run goes on.
void Watch::handle_view_input() {
  if (view_ == nullptr || view_->on_input()) {
    return;
  }
  if (!command_runs()) {
    told_to_stop_ = true;
    return;
  }
  end_view();
  output_->note(fmt::format(
      "the command runs on{}; Ctrl-C stops it",
      options_.command_output.empty() ? "" : ", its output goes to " + options_.command_output));
}

// What nobody can read need not be made.
void Watch::check_lines() {
  if (!output_->check_lines()) {
    view_.reset();
  }
}

}  // namespace tidemark::live
