// SPDX-License-Identifier: Apache-2.0
#include "check/result.h"

#include <string.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/units.h"

namespace tidemark::check {
namespace {

constexpr int kKilled = 128;

std::string failure_text(int status) {
  if (status > kKilled) {
    if (const char* const name = ::sigabbrev_np(status - kKilled); name != nullptr) {
      return fmt::format("the command was killed by SIG{} (status {})", name, status);
    }
  }
  return fmt::format("the command failed with status {}", status);
}

}  // namespace

std::string problem_with(const CheckSpec& spec, const CheckRun& run) {
  const live::WatchEnding& ending = run.ending;
  if (!run.has_started()) {
    return "the command could not be started";
  }
  if (ending.ran_out_of_time && spec.timeout_ns) {
    return fmt::format("the command did not end within {}",
                       format_duration(to_seconds(*spec.timeout_ns)));
  }
  if (*ending.command_status != 0 && !ending.was_told_to_stop && !ending.ran_out_of_time) {
    return failure_text(*ending.command_status);
  }
  return ending.own_code != kExitOk ? "it could not be watched or recorded completely" : "";
}

CheckStatus status_of(const tracker::BudgetRows& rows, bool has_failed, bool was_interrupted) {
  if (has_failed) {
    return CheckStatus::kError;
  }
  switch (tracker::state_of(rows)) {
    case tracker::BudgetState::kExceeded:
      return CheckStatus::kFail;
    case tracker::BudgetState::kUndetermined:
      return CheckStatus::kUndetermined;
    case tracker::BudgetState::kWithin:
    case tracker::BudgetState::kSuppressed:
      break;
  }
  return was_interrupted ? CheckStatus::kUndetermined : CheckStatus::kPass;
}

CheckStatus status_of(std::span<const CheckResult> results) {
  CheckStatus worst = CheckStatus::kPass;
  for (const CheckResult& result : results) {
    worst = std::max(worst, result.status);
  }
  return worst;
}

int exit_code_of(CheckStatus status) {
  static constexpr std::array<int, 4> kCodes{kExitOk, kExitUndetermined, kExitLeak, kExitTarget};
  return kCodes[static_cast<std::size_t>(status)];
}

std::string_view status_name(CheckStatus status) {
  static constexpr std::array<std::string_view, 4> kNames{"pass", "undetermined", "fail", "error"};
  return kNames[static_cast<std::size_t>(status)];
}

}  // namespace tidemark::check
