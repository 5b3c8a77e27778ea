// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/units.h"
#include "report/output.h"
#include "report/profile_report.h"
#include "tracker/sites/stack_lines.h"

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

// One object, as docs/output.md has it; without a line end.
std::string profile_json(const ProfileReport& report);

// Its parts. All of it is escaped.

// Why no line is to be named, in a sentence, where none grows.
std::string no_growth_text(const ProfileReport& report);
// "+12.3 MiB/min", "+1.20 MiB/step".
std::string growth_text(double bytes, RateUnit unit = RateUnit::kSecond);
// "trainer, pid 4711 (train.py)".
std::string process_text(const tracker::TracedProcess& process);
std::string process_text(const tracker::ProcessLabel& label, const ProcessKey& key);
// "98 % of the growth of trainer, pid 4711 (train.py)", or "in ..." when no share is known.
std::string share_text(const ProfileReport& report, const tracker::HeldMemory& held);
// What stands for a line: "collate(Batch&) train.cpp:42", "train.py:42 in collate calling
// torch.functional.stack"; for a function "collate in train.py".
std::string line_text(const ProfileReport& report, const tracker::RankedLine& line,
                      std::size_t columns);
std::string line_text(const ProfileReport& report, const tracker::RankedLine& line,
                      tracker::Grouping grouping, std::size_t columns);
// How the frames of a stack are shown: one row each, or several in one.
struct StackRow {
  std::size_t begin = 0;  // into ShownStack::frames
  std::size_t end = 0;
  bool is_folded = false;
};
std::vector<StackRow> stack_rows(const tracker::ShownStack& stack);
// "... 18 frames of libtorch_cpu.so and torch".
std::string folded_text(const tracker::ShownStack& stack, const StackRow& row);
// What grows by function, where one has several lines, and by native function below Python.
std::string groups_text(const ProfileReport& report, const ProfileStyle& style);

// When the live bytes of a site were born, as bars and in words: "▁▂▇█  in every part of the run".
std::string age_text(std::span<const SiteAges::Interval> ages, Glyphs glyphs);

// A line with its figures and its call stacks: a paragraph.
std::string line_paragraph(const ProfileReport& report, const tracker::RankedLine& line,
                           std::size_t rank, const ProfileStyle& style);

// What others use /dev/shm for is not worth a word.
inline constexpr std::uint64_t kShmWorthAWord = 1U << 20U;

// The allocator of the process that grew most holds much that no live block needs.
struct KeptByAllocator {
  double bytes = 0.0;
  double share = 0.0;  // of the footprint
  bool is_most_of_the_growth = false;
};
std::optional<KeptByAllocator> kept_by_allocator(const ProfileReport& report);

// The tracer saw next to nothing of the memory of the process that grew most, now or ever: what it
// says about lines and about the allocator is worth nothing there.
struct UnseenMemory {
  double bytes = 0.0;
  double explained_share = 0.0;  // of the footprint
};
std::optional<UnseenMemory> unseen_memory(const ProfileReport& report);

// A process that the tracer is not in grew by enough to be told.
bool has_unseen_growth(const ProfileReport& report);
// "NOT SEEN: pid 4711 (job) grew by 60.0 MiB and was not traced, because it is statically linked.";
// "" where there is no such growth.
std::string unseen_growth_text(const ProfileReport& report);
// The processes that the tracer is not in, those that grew first.
std::string untraced_text(const ProfileReport& report, const ProfileStyle& style);

// Where the growth of the process that grew most is, and what to do when the allocator keeps it.
std::string where_text(const ProfileReport& report, const ProfileStyle& style);
std::string shm_text(const ShmGrowthReport& shm, const ProfileStyle& style);
// How far to trust the figures, and what went wrong.
std::string coverage_text(const ProfileReport& report, const ProfileStyle& style);

}  // namespace tidemark::report
