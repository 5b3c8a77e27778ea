// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "check/result.h"
#include "report/chart_text.h"

// The results of `tidemark check` in all its formats. Names of checks, processes and functions are
// bytes from strangers; each of these escapes them for its readers.
namespace tidemark::check {

// The report of one check: its result in one line, a table, the chart, and why.
std::string check_text(const CheckResult& result, report::Glyphs glyphs);
// Of several checks, the last line: "checks: 3 passed, 1 failed (train)".
std::string check_summary(std::span<const CheckResult> results);

// A test suite with a test case per check. Undetermined is an error of its own type, not a skip:
// a gate that cannot tell must not look open.
std::string check_junit(std::span<const CheckResult> results);

// For a comment on a pull request.
std::string check_markdown(std::span<const CheckResult> results);

// One object, as docs/output.md has it; without a line end.
std::string check_json(std::span<const CheckResult> results);

// Workflow commands for a log of GitHub Actions: one line per check that has not passed, and per
// change in its history.
std::string github_annotations(std::span<const CheckResult> results);
// Text as such a log shows it: no line of it can be taken for a command.
std::string without_workflow_commands(std::string_view text);

}  // namespace tidemark::check
