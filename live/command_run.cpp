// SPDX-License-Identifier: Apache-2.0
#include "live/command_run.h"

#include <string.h>
#include <sys/wait.h>

#include <utility>

#include <fmt/format.h>

#include "common/units.h"

namespace tidemark::live {

Status CommandRun::start(const LaunchOptions& options, std::optional<std::int64_t> end_after_ns) {
  TIDEMARK_TRY_ASSIGN(command_, system_.launch(options));
  if (end_after_ns) {
    ending_.emplace(system_.clock().monotonic_ns() + *end_after_ns);
  }
  return ok();
}

bool CommandRun::on_signal(const ReceivedSignal& signal) {
  const bool ran = running();
  was_told_to_stop_ = was_told_to_stop_ || (ran && signal.asks_to_stop());
  if (!delay_stop(signal)) {
    command_->handle(signal);
  }
  for (const ReapedChild& child : command_->take_reaped()) {
    wait_statuses_[child.pid] = child.wait_status;
  }
  return ran && !running();
}

// A wrapper that ends by a signal leaves its trainer alone, and a signal from a process reaches the
// wrapper only. True: the command is told later.
bool CommandRun::delay_stop(const ReceivedSignal& signal) {
  if (!signal.asks_to_stop() || signal.from_kernel || !running()) {
    return false;
  }
  if (stop_) {  // asked twice: do not wait any longer
    stop_.reset();
    return false;
  }
  StopOrder order = handler_.stop_order();
  const bool includes_command = std::erase(order.first, command_->key()) > 0;
  const std::int64_t now_ns = system_.clock().monotonic_ns();
  stop_.emplace(order.first, signal.number, now_ns + order.patience_ns);
  if (stop_->is_over(now_ns)) {
    stop_.reset();
    return false;
  }
  stop_signal_ = includes_command ? std::nullopt : std::optional(signal);
  output_.note(fmt::format("told to stop: pid {} is told first, and has {} to end",
                           order.first.front().pid,
                           format_duration(to_seconds(order.patience_ns))));
  return !includes_command;
}

void CommandRun::pass_on_stop() {
  const std::int64_t now_ns = system_.clock().monotonic_ns();
  if (!stop_ || !stop_->is_over(now_ns)) {
    return;
  }
  if (now_ns >= stop_->end_ns()) {
    output_.note("it has not ended in that time");
  }
  stop_.reset();
  if (const auto signal = std::exchange(stop_signal_, {})) {
    command_->handle(*signal);
  }
}

void CommandRun::end_at_time_limit(std::span<const ProcessKey> members) {
  if (!ending_) {
    return;
  }
  const bool had_begun = ending_->has_begun();
  const bool had_killed = ending_->had_to_kill();
  ending_->act(system_.clock().monotonic_ns(), members,
               [this](const ProcessKey& key, int number) { system_.send_signal(key, number); });
  if (ending_->has_begun() && !had_begun) {
    output_.note("its time is over: the command is told to end");
    handler_.on_time_limit();
  }
  if (ending_->had_to_kill() && !had_killed) {
    output_.note("it did not end when told to: it is killed");
  }
}

std::string exit_text(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    const char* name = ::sigabbrev_np(number);
    return name != nullptr ? fmt::format(", killed by SIG{}", name)
                           : fmt::format(", killed by signal {}", number);
  }
  const int status = WEXITSTATUS(wait_status);
  return status == 0 ? "" : fmt::format(", exit status {}", status);
}

}  // namespace tidemark::live
