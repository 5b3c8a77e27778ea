// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "report/output.h"
#include "report/profile_report.h"

namespace tidemark::report {

// The report at the end: what grows first. Everything in it is escaped.
std::string profile_text(const ProfileReport& report, const ProfileStyle& style);

// One line of a run that goes on: "00:00:23  step 120  1 traced  sites 812 MiB  +12.3 MiB/min leak
// f() a.cpp:3".
std::string profile_line(const ProfileReport& report, double t_s);
// The lines that grow fastest, one row each, for a terminal that is drawn anew; `columns` wide, and
// at most `rows` with the line above them.
std::string profile_list(const ProfileReport& report, double t_s, std::size_t columns,
                         std::size_t rows);

}  // namespace tidemark::report
