// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "report/profile_report.h"
#include "tracker/compare/budget.h"

namespace tidemark::check {

// Growth of a call stack that is known and put up with, for a time.
struct Suppression {
  std::string site;  // pattern with * and ?: a function, a file, or file:line
  std::string reason;
  std::chrono::sys_days expires;    // it applies up to and on that day
  std::vector<std::string> checks;  // names; empty: all
};

// "2027-01-31".
Result<std::chrono::sys_days> parse_date(std::string_view text);
std::string date_text(std::chrono::sys_days date);
std::chrono::sys_days today_utc();

// Whether a frame of the stack is what the pattern means: its function (with or without arguments
// and what it is in), its file (whole or last part), or that file with ":line".
bool matches_site(std::string_view pattern, const tracker::RunSites& run,
                  const std::vector<std::uint32_t>& frames);

// Whether all call stacks through a line are suppressed.
bool is_suppressed(const report::ProfileReport& report, const tracker::RankedLine& line,
                   std::span<const Suppression> suppressions);

// What the lines and sites grow by that are suppressed, and by which of the suppressions.
struct SuppressedGrowth {
  double bytes_per_s = 0.0;
  std::optional<double> bytes_per_step;
  double doubt = 0.1;  // share of it that the tracer's estimate may miss
  std::set<std::size_t> used;
};
SuppressedGrowth suppressed_growth(const report::ProfileReport& report,
                                   std::span<const Suppression> suppressions);

// Of the run, or against a baseline.
bool is_about_growth(const tracker::BudgetRow& row);

// Takes it out of rows about growth: what then is within its limit is suppressed.
void suppress(tracker::BudgetRows& rows, const SuppressedGrowth& growth);

// Those that are meant for this check and still apply, or do not any more.
std::vector<Suppression> suppressions_of(std::span<const Suppression> all, std::string_view check,
                                         std::chrono::sys_days today, bool expired);

}  // namespace tidemark::check
