// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "common/units.h"
#include "report/output.h"
#include "report/profile_report.h"

// Words of `tidemark profile` for one line of code, or one call stack. All of it is escaped.
namespace tidemark::report {

// "+12.3 MiB/min", "+1.20 MiB/step".
std::string growth_text(double bytes, RateUnit unit = RateUnit::kSecond);
// "trainer, pid 4711 (python3)".
std::string process_text(const tracker::TracedProcess& process);
// "98 % of the growth of trainer, pid 4711 (python3)", or "in ..." when no share is known.
std::string share_text(const ProfileReport& report, const tracker::HeldMemory& held);
// The frame that stands for a line: "collate(Batch&) train.cpp:42".
std::string line_text(const ProfileReport& report, const tracker::RankedLine& line,
                      std::size_t columns);

// When the live bytes of a site were born, as bars and in words: "▁▂▇█  in every part of the run".
std::string age_text(std::span<const SiteAges::Interval> ages, Glyphs glyphs);

// A line with its figures and its call stacks: a paragraph.
std::string line_paragraph(const ProfileReport& report, const tracker::RankedLine& line,
                           std::size_t rank, const ProfileStyle& style);

}  // namespace tidemark::report
