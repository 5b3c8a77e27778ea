// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/process_table.h"
#include "common/records.h"
#include "common/run_summary.h"
#include "common/units.h"

namespace tidemark::report {

// One line per tick, for people and logs: no colour, no cursor movement, every name escaped.
class TickLines {
 public:
  explicit TickLines(const TimeFormat& moments = {}) : time_format_(moments) {}

  // `trainer`: the process that gets a column of its own; pid 0 for none.
  std::string line(const Tick& tick, const ProcessKey& trainer);

 private:
  // What one figure of the tree was.
  struct Past {
    std::optional<std::uint64_t> first_bytes;
    std::uint64_t previous_bytes = 0;
  };
  std::string tree_part(const GroupSample& tree);

  TimeFormat time_format_;
  Past footprint_;
  Past rss_;
  Past pss_;
};

// The events of a tick, a line each; many alike (20 workers started) become one line.
std::vector<std::string> event_lines(const Tick& tick, const ProcessLookup& lookup,
                                     const TimeFormat& moments = {});

// A line for each kind of loss when it first appears; the summary has the sums.
class LossLines {
 public:
  explicit LossLines(const TimeFormat& moments = {}) : time_format_(moments) {}

  std::vector<std::string> lines(const Tick& tick);

 private:
  TimeFormat time_format_;
  std::set<std::string> printed_;
};

// The tree as it stands: one row per process with its role, children below their parents. Workers
// that are all alike (same parent, role and command, no children) share two rows.
std::string tree_text(const Tick& tick, const ProcessLookup& lookup);

// The last lines: start, end, peak, growth and rates, of the tree and per role; what was lost.
std::string summary_text(const RunSummary& summary, const TimeFormat& moments = {});

}  // namespace tidemark::report
