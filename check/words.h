// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/left_behind.h"
#include "check/result.h"
#include "tracker/compare/budget.h"
#include "tracker/sites/site_ranking.h"
#include "tracker/sites/stack_lines.h"

// The words of `tidemark check`, for all of its outputs. All of it is escaped for terminals.
namespace tidemark::check {

// "PASS", "FAIL", "CANNOT TELL", "ERROR".
std::string_view status_word(CheckStatus status);
// "ok", "EXCEEDED", ...
std::string_view state_word(tracker::BudgetState state);
// "1.52 MiB/step (1.48 MiB/step to 1.56 MiB/step)", "none seen", "512 MiB", "12".
std::string measured_text(const tracker::BudgetRow& row);
std::string limit_text(const tracker::BudgetRow& row);
// "max_growth: 1.52 MiB/step, more than 1.00 MiB/step".
std::string row_text(const tracker::BudgetRow& row);
// Why a row is undetermined and what would decide it: "it still grows, and ..., about 40 more
// steps decide it".
std::string doubt_text(const tracker::BudgetRow& row);

// The answer in one line, without the name of the check: "within 3 budgets; a leak above 12.0
// KiB/step would have been seen".
std::string answer_line(const CheckResult& result);
// "pid 12 (sleep), 40.0 MiB", "/dev/shm/x, 8.00 MiB"; empty: nothing is left.
std::vector<std::string> left_texts(const LeftBehind& left);
std::string history_text(const HistoryChange& change);
std::string suppression_text(const Suppression& suppression);
// What to do next: sentences.
std::vector<std::string> next_texts(const CheckResult& result);

// The lines of code that hold the growth of a check. They refer to its result.
struct CheckLine {
  const tracker::RankedLine* ranked = nullptr;
  tracker::ShownStack stack;      // of its call stacks the one that grows most
  std::optional<std::size_t> at;  // its frame there; nullopt: the stack has none that is known

  const tracker::ShownFrame* frame() const { return at ? &stack.frames[*at] : nullptr; }
};

// Those that grow and are not suppressed, the fastest first. Empty: none is known.
std::vector<CheckLine> growing_lines(const CheckResult& result);

// "collate(Batch&) collate.cpp:42", "train.py:42 in collate".
std::string place_text(const CheckLine& line, std::size_t columns);
// "206 KiB/step, 572 MiB/min, 89 % of the growth", or what it holds.
std::string figures_text(const CheckLine& line);

// The lines with their figures and their callers; those that hold most where none can be seen to
// grow. "" without a tracer.
std::string check_lines(const CheckResult& result);

}  // namespace tidemark::check
