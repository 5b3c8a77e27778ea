// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check/history.h"
#include "check/run.h"
#include "check/spec.h"
#include "check/suppressions.h"
#include "tracker/compare/budget.h"

namespace tidemark::check {

// The worse, the later.
enum class CheckStatus { kPass, kUndetermined, kFail, kError };

// What became of one check. Texts are sentences for people, escaped.
struct CheckResult {
  CheckSpec spec;
  CheckStatus status = CheckStatus::kPass;
  tracker::BudgetRows rows;
  std::string problem;  // of kError, or why a run says nothing; empty: none
  std::uint32_t runs = 0;
  std::vector<double> left_by_job;  // bytes that were left after each job
  std::optional<CheckRun> shown;    // the run that the figures are of; nullopt: none could be made
  std::optional<std::size_t> baseline_runs;  // it was compared with
  std::vector<HistoryChange> changes;
  std::vector<Suppression> suppressed;  // by these
  std::vector<std::string> notes;
};

// Why a run gives no answer, whatever its memory did: it could not be started, failed or took too
// long. Empty: it ended as it should.
std::string problem_with(const CheckSpec& spec, const CheckRun& run);

// What the rows, and what went wrong, come to.
CheckStatus status_of(const tracker::BudgetRows& rows, bool has_failed, bool was_interrupted);
int exit_code_of(CheckStatus status);
// Of all checks together: the worst.
CheckStatus status_of(std::span<const CheckResult> results);

// "pass", "undetermined", "fail", "error": they are in files and never change.
std::string_view status_name(CheckStatus status);

}  // namespace tidemark::check
