// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/records.h"
#include "common/step_count.h"

namespace tidemark {

// Start, end and peak of one number over a run.
struct Course {
  double first_s = 0.0;
  double last_s = 0.0;
  double peak_s = 0.0;
  std::uint64_t first_bytes = 0;
  std::uint64_t last_bytes = 0;
  std::uint64_t peak_bytes = 0;
  // Growth between the first and the last marked step, for the rate per step. Counted through
  // restarts of the job's own numbering.
  std::optional<std::int64_t> first_step;
  std::optional<std::int64_t> last_step;
  std::uint64_t first_step_bytes = 0;
  std::uint64_t last_step_bytes = 0;
  bool seen = false;
  bool ended = false;  // a role that has no process any more

  void add(double t_s, std::uint64_t bytes, std::optional<std::int64_t> step);
  std::int64_t growth_bytes() const;
  std::optional<double> growth_bytes_per_s() const;
  std::optional<double> growth_bytes_per_step() const;
};

// What the last lines of `monitor` say. Fed with every tick; constant size.
class RunSummary {
 public:
  void add(const Tick& tick);
  void lose(const LossRecord& loss);

  struct RoleCourse {
    Role role = Role::kOther;
    std::uint32_t most_processes = 0;
    bool steady = true;  // the number of its processes did not change: a rate means something
    Course memory;       // footprint, or rss where the run has no footprint
  };

  std::uint64_t ticks() const { return ticks_; }
  double last_s() const { return last_s_; }
  double worst_late_s() const { return worst_late_s_; }
  const Course& footprint() const { return footprint_; }  // not seen: unknown in this run
  // These two likewise.
  const Course& rss() const { return rss_; }
  const Course& pss() const { return pss_; }
  // At some moment somebody was there.
  bool has_seen_any() const { return has_seen_any_; }
  const std::array<RoleCourse, kRoleCount>& roles() const { return roles_; }
  std::uint64_t starts() const { return starts_; }
  std::uint64_t exits() const { return exits_; }
  std::uint64_t oom_kills() const { return oom_kills_; }
  // Everything that was lost, by its id, summed up.
  const std::vector<LossRecord>& losses() const { return losses_; }

 private:
  std::uint64_t ticks_ = 0;
  double last_s_ = 0.0;
  double worst_late_s_ = 0.0;
  Course footprint_;
  Course rss_;
  Course pss_;
  bool has_seen_any_ = false;
  std::array<RoleCourse, kRoleCount> roles_{};
  std::uint64_t starts_ = 0;
  std::uint64_t exits_ = 0;
  std::uint64_t oom_kills_ = 0;
  StepCount steps_;
  std::vector<LossRecord> losses_;
};

}  // namespace tidemark
