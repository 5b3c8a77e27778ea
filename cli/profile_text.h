// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "cli/chart_text.h"
#include "cli/profile_report.h"

namespace tidemark::cli {

struct ProfileStyle {
  Glyphs glyphs = Glyphs::kAscii;
  bool colour = false;  // of a terminal
};

// The report at the end: what grows first. Everything in it is escaped.
std::string profile_text(const ProfileReport& report, const ProfileStyle& style);

// One line of a run that goes on: "00:00:23  step 120  sites 812 MiB  +12.3 MiB/min leak f()
// a.cpp:3".
std::string profile_line(const ProfileReport& report, double t_s);
// The fastest sites, one line each, for a terminal that is drawn anew; `columns` wide.
std::string profile_list(const ProfileReport& report, double t_s, std::size_t columns);

// When the live bytes of a site were born, as bars and in words: "  born  ▁▂▇█  throughout the
// run".
std::string birth_text(std::span<const SiteBirths::Birth> births, Glyphs glyphs);
// "+12.3 MiB/min".
std::string growth_text(double bytes_per_s);

}  // namespace tidemark::cli
