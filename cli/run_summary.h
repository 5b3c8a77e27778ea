// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/json_writer.h"
#include "common/records.h"

namespace tidemark::cli {

// First, last and highest value of one series.
struct Extent {
  std::uint64_t start_bytes = 0;
  std::uint64_t end_bytes = 0;
  std::uint64_t peak_bytes = 0;
  double peak_t_s = 0.0;  // steps, in a run that knows no seconds

  std::int64_t growth_bytes() const {
    return static_cast<std::int64_t>(end_bytes) - static_cast<std::int64_t>(start_bytes);
  }
};

// The totals of a run, for the last line of a stream: what it started and ended with, its peak, its
// growth. Takes the footprint, or RSS where the run has no footprint.
class RunSummary {
 public:
  // `time_is_steps` as in RunInfo: such a run has no rate per minute.
  explicit RunSummary(bool time_is_steps = false) : time_is_steps_(time_is_steps) {}

  void add(const Tick& tick);

  std::uint64_t ticks() const { return ticks_; }
  std::optional<double> duration_s() const {
    return time_is_steps_ ? std::nullopt : std::optional(last_t_s_ - first_t_s_);
  }
  // Steps that were taken while we looked; nullopt when fewer than two were seen.
  std::optional<std::int64_t> steps() const;
  const char* metric() const { return uses_footprint_ ? "footprint" : "rss"; }
  const Extent& tree() const { return tree_; }
  const std::map<Role, Extent>& roles() const { return roles_; }
  const std::map<std::string, std::uint64_t>& losses() const { return losses_; }

 private:
  std::uint64_t figure_of(const GroupSample& sum) const;

  bool time_is_steps_;
  std::uint64_t ticks_ = 0;
  double first_t_s_ = 0.0;
  double last_t_s_ = 0.0;
  std::optional<std::int64_t> first_step_;
  std::optional<std::int64_t> last_step_;
  bool uses_footprint_ = true;
  Extent tree_;
  std::map<Role, Extent> roles_;
  std::map<std::string, std::uint64_t> losses_;
};

void append_summary_json(JsonWriter& json, const RunSummary& summary);

}  // namespace tidemark::cli
