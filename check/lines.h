// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/result.h"
#include "tracker/sites/site_ranking.h"
#include "tracker/sites/stack_lines.h"

// The lines of code that hold the growth of a check. They refer to its result. Texts are escaped.
namespace tidemark::check {

struct CheckLine {
  const tracker::RankedLine* ranked = nullptr;
  tracker::ShownStack stack;      // of its call stacks the one that grows most
  std::optional<std::size_t> at;  // its frame there; nullopt: the stack has none that is known

  const tracker::ShownFrame* frame() const { return at ? &stack.frames[*at] : nullptr; }
};

// Those that grow and are not suppressed, the fastest first. Empty: none is known.
std::vector<CheckLine> growing_lines(const CheckResult& result);

// "collate(Batch&) collate.cpp:42".
std::string place_text(const CheckLine& line, std::size_t columns);
// "206 KiB/step, 572 MiB/min, 89 % of the growth", or what it holds.
std::string figures_text(const CheckLine& line);

// The lines with their figures and their callers; those that hold most where none can be seen to
// grow. "" without a tracer.
std::string check_lines(const CheckResult& result);

}  // namespace tidemark::check
