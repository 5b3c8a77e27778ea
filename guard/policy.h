// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.h"
#include "guard/headroom.h"

namespace tidemark::guard {

struct GuardSettings {
  std::int64_t horizon_ns = 120 * kNsPerSecond;
  // A checkpoint may take minutes. Waiting for it costs nothing: who takes the last reserve
  // meanwhile is killed at once.
  std::int64_t grace_ns = 120 * kNsPerSecond;
  // Of a dry run: how soon after a kill that was only told of the next stop may be.
  std::int64_t rehearse_again_ns = 600 * kNsPerSecond;
};

// How fast a leak grows, as an interval. Only the verdict `leak` makes one: `growing` may still be
// a warm-up that ends.
struct LeakRate {
  double low_bytes_per_s = 0.0;
  double high_bytes_per_s = 0.0;
};

// What one look of the guard has seen.
struct GuardSight {
  std::int64_t now_ns = 0;           // CLOCK_MONOTONIC
  std::optional<Headroom> headroom;  // nullopt: no limit could be read
  std::optional<LeakRate> leak;
  std::optional<double> pressure_percent;  // PSI "full avg10"
  bool trainers_alive = true;              // of those that got the signal
  bool tree_alive = true;                  // as far as the last kill saw
};

enum class GuardAct {
  kNothing,
  kWarn,       // tell whoever wants to know
  kStop,       // the signal, to the trainers
  kKill,       // everybody
  kStandDown,  // the trainers have ended and memory is free again; what is left runs on
};

enum class GuardReason {
  kHeadroom,     // less is free than is to be kept free
  kForecast,     // it leaks, and the limit is nearer than the horizon
  kThrashing,    // everybody waits for memory
  kGraceOver,    // the trainers still run
  kLastReserve,  // during the grace time: the kernel would be next
};

enum class GuardStage { kWatching, kWarned, kStopping, kKilling, kDone };

// What to do, why, and the figures behind it.
struct GuardDecision {
  GuardAct act = GuardAct::kNothing;
  GuardReason reason = GuardReason::kHeadroom;
  std::optional<Headroom> headroom;
  std::optional<double> limit_in_s_low;  // by the forecast
  std::optional<double> limit_in_s_high;
  std::optional<double> pressure_percent;
};

// When a job is warned about, stopped and killed. Pure: time comes with each sight. Allocates
// nothing.
class GuardPolicy {
 public:
  // A dry run kills nobody: it goes on, once there is room again.
  explicit GuardPolicy(const GuardSettings& settings, bool dry_run = false)
      : settings_(settings), dry_run_(dry_run) {}

  GuardDecision decide(const GuardSight& sight);
  GuardStage stage() const { return stage_; }

  // How long nothing has to be looked at: as if all memory that there is to spare could go at
  // 10 MB per ms.
  std::int64_t next_look_ns(const std::optional<Headroom>& headroom) const;

 private:
  std::optional<GuardReason> reason_to_stop(const GuardSight& sight);
  std::optional<GuardReason> reason_to_warn(const GuardSight& sight) const;
  bool is_thrashing(const GuardSight& sight);
  bool begins_again(const GuardSight& sight);
  GuardDecision decide_before_the_signal(const GuardSight& sight);
  GuardDecision decide_in_grace(const GuardSight& sight);
  std::int64_t last_reserve(const Headroom& headroom) const;
  GuardDecision decision(GuardAct act, GuardReason reason, const GuardSight& sight) const;

  GuardSettings settings_;
  bool dry_run_;
  GuardStage stage_ = GuardStage::kWatching;
  std::optional<std::int64_t> pressed_since_ns_;
  std::optional<std::int64_t> warned_ns_;
  std::int64_t grace_ends_ns_ = 0;
  std::optional<Headroom> stopped_at_;   // the limit that the stop was for
  std::int64_t last_reserve_bytes_ = 0;  // of that limit
  std::int64_t killed_ns_ = 0;
};

}  // namespace tidemark::guard
