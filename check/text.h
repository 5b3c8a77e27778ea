// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "check/result.h"
#include "report/chart_text.h"

namespace tidemark::check {

// The report of one check: its result in one line, a table, the chart, and why.
std::string check_text(const CheckResult& result, report::Glyphs glyphs);
// The rows as a table, without the rest.
std::string check_table(const tracker::BudgetRows& rows);
// Of several checks, the last line: "checks: 3 passed, 1 failed (train)".
std::string check_summary(std::span<const CheckResult> results);

}  // namespace tidemark::check
