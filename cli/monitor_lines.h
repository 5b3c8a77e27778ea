// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/process_lookup.h"
#include "common/records.h"
#include "monitor/run_summary.h"

namespace tidemark::cli {

// One line per tick, for people and logs: no colour, no cursor movement, every name escaped.
class TickLines {
 public:
  // `trainer`: the process that gets a column of its own; pid 0 for none.
  std::string line(const Tick& tick, const ProcessKey& trainer);

 private:
  std::optional<std::uint64_t> first_bytes_;
  std::uint64_t previous_bytes_ = 0;
};

// The events of a tick, a line each; many alike (20 workers born) become one line.
std::vector<std::string> event_lines(const Tick& tick, const ProcessLookup& lookup);

// A line for each kind of loss when it first appears; the summary has the sums.
class LossLines {
 public:
  std::vector<std::string> lines(const Tick& tick);

 private:
  std::set<std::string> told_;
};

// The last lines: start, end, peak, growth and rates, of the tree and per role; what was lost.
std::string summary_text(const monitor::RunSummary& summary);

}  // namespace tidemark::cli
