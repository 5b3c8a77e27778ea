// SPDX-License-Identifier: Apache-2.0
#include "guard/policy.h"

#include <algorithm>

namespace tidemark::guard {
namespace {

constexpr std::int64_t kNsPerMs = kNsPerSecond / 1000;
constexpr std::int64_t kFastestBytesPerNs = 10;  // 10 MB per ms
constexpr std::int64_t kShortestLookNs = 2 * kNsPerMs;
constexpr std::int64_t kLongestLookNs = 500 * kNsPerMs;

constexpr double kWarnFactor = 2.0;  // of what is kept free, and of the horizon
constexpr double kCalmFactor = 3.0;
constexpr std::int64_t kWarnAgainNs = 600 * kNsPerSecond;

// systemd-oomd waits for 60 % over 30 s; a training job that is paged out does not come back.
constexpr double kThrashingPercent = 40.0;
constexpr std::int64_t kThrashingNs = 5 * kNsPerSecond;
constexpr std::int64_t kThrashingGraceNs = 30 * kNsPerSecond;  // others suffer meanwhile

constexpr std::int64_t kKillAgainNs = 200 * kNsPerMs;

struct TimeLeft {
  double low_s;
  double high_s;
};

// Until all that is free has leaked.
std::optional<TimeLeft> time_left(const GuardSight& sight) {
  if (!sight.leak || !sight.headroom || !(sight.leak->low_bytes_per_s > 0.0)) {
    return std::nullopt;
  }
  const auto free = static_cast<double>(std::max<std::int64_t>(0, sight.headroom->free_bytes));
  return TimeLeft{free / sight.leak->high_bytes_per_s, free / sight.leak->low_bytes_per_s};
}

bool has_less_than(const GuardSight& sight, double times_kept_free) {
  return sight.headroom &&
         static_cast<double>(sight.headroom->free_bytes) <
             times_kept_free * static_cast<double>(sight.headroom->keep_free_bytes);
}

}  // namespace

GuardDecision GuardPolicy::decision(GuardAct act, GuardReason reason,
                                    const GuardSight& sight) const {
  GuardDecision made{act, reason, sight.headroom, {}, {}, sight.pressure_percent};
  if (const auto left = time_left(sight)) {
    made.limit_in_s_low = left->low_s;
    made.limit_in_s_high = left->high_s;
  }
  return made;
}

// The average of 10 s lags behind, and is high for a moment when a large file is read.
bool GuardPolicy::is_thrashing(const GuardSight& sight) {
  const bool is_pressed = sight.pressure_percent && *sight.pressure_percent >= kThrashingPercent &&
                          has_less_than(sight, kWarnFactor);
  if (!is_pressed) {
    pressed_since_ns_.reset();
    return false;
  }
  pressed_since_ns_ = pressed_since_ns_.value_or(sight.now_ns);
  return sight.now_ns - *pressed_since_ns_ >= kThrashingNs;
}

std::optional<GuardReason> GuardPolicy::reason_to_stop(const GuardSight& sight) {
  const bool is_thrashing_now = is_thrashing(sight);
  if (has_less_than(sight, 1.0)) {
    return GuardReason::kHeadroom;
  }
  if (const auto left = time_left(sight); left && left->high_s < to_seconds(settings_.horizon_ns)) {
    return GuardReason::kForecast;
  }
  return is_thrashing_now ? std::optional(GuardReason::kThrashing) : std::nullopt;
}

std::optional<GuardReason> GuardPolicy::reason_to_warn(const GuardSight& sight) const {
  if (has_less_than(sight, kWarnFactor)) {
    return GuardReason::kHeadroom;
  }
  const auto left = time_left(sight);
  return left && left->high_s < kWarnFactor * to_seconds(settings_.horizon_ns)
             ? std::optional(GuardReason::kForecast)
             : std::nullopt;
}

GuardDecision GuardPolicy::decide_before_the_signal(const GuardSight& sight) {
  if (const auto reason = reason_to_stop(sight)) {
    stage_ = GuardStage::kStopping;
    grace_ends_ns_ = sight.now_ns + (*reason == GuardReason::kThrashing
                                         ? std::min(settings_.grace_ns, kThrashingGraceNs)
                                         : settings_.grace_ns);
    // A job that is already beyond the reserve may still come to rest there and save itself.
    const Headroom headroom = sight.headroom.value_or(Headroom{});
    const auto kept = static_cast<std::int64_t>(headroom.keep_free_bytes);
    stopped_at_ = sight.headroom;
    last_reserve_bytes_ = std::max(std::min(kept / 4, headroom.free_bytes / 2), kept / 16);
    return decision(GuardAct::kStop, *reason, sight);
  }
  if (stage_ == GuardStage::kWarned) {
    const auto left = time_left(sight);
    const bool is_calm = !has_less_than(sight, kCalmFactor) &&
                         !(left && left->high_s < kCalmFactor * to_seconds(settings_.horizon_ns));
    if (is_calm) {
      stage_ = GuardStage::kWatching;
    }
    return {};
  }
  // Spikes that come close again and again are told of now and then.
  const auto reason = reason_to_warn(sight);
  if (reason && (!warned_ns_ || sight.now_ns - *warned_ns_ >= kWarnAgainNs)) {
    stage_ = GuardStage::kWarned;
    warned_ns_ = sight.now_ns;
    return decision(GuardAct::kWarn, *reason, sight);
  }
  return {};
}

// Another limit may be the nearest by now: what is left of one says nothing of the other.
std::int64_t GuardPolicy::last_reserve(const Headroom& headroom) const {
  const bool is_same = stopped_at_ && stopped_at_->limit == headroom.limit &&
                       stopped_at_->limit_bytes == headroom.limit_bytes;
  return is_same ? last_reserve_bytes_ : static_cast<std::int64_t>(headroom.keep_free_bytes / 4);
}

GuardDecision GuardPolicy::decide_in_grace(const GuardSight& sight) {
  const bool is_free_again = !has_less_than(sight, 1.0);
  if (!sight.trainers_alive && is_free_again) {
    stage_ = GuardStage::kWatching;
    pressed_since_ns_.reset();
    return decision(GuardAct::kStandDown, GuardReason::kHeadroom, sight);
  }
  const bool is_last = sight.headroom && sight.headroom->free_bytes < last_reserve(*sight.headroom);
  if (!is_last && sight.now_ns < grace_ends_ns_) {
    return {};
  }
  stage_ = GuardStage::kKilling;
  killed_ns_ = sight.now_ns;
  return decision(GuardAct::kKill, is_last ? GuardReason::kLastReserve : GuardReason::kGraceOver,
                  sight);
}

GuardDecision GuardPolicy::decide(const GuardSight& sight) {
  switch (stage_) {
    case GuardStage::kWatching:
    case GuardStage::kWarned:
      return decide_before_the_signal(sight);
    case GuardStage::kStopping:
      return decide_in_grace(sight);
    case GuardStage::kKilling:
      if (!sight.tree_alive) {
        stage_ = GuardStage::kDone;
      } else if (sight.now_ns - killed_ns_ >= kKillAgainNs) {
        killed_ns_ = sight.now_ns;
        return decision(GuardAct::kKill, GuardReason::kGraceOver, sight);
      }
      return {};
    case GuardStage::kDone:
      if (begins_again(sight)) {
        stage_ = GuardStage::kWatching;
        return decide_before_the_signal(sight);
      }
      return {};
  }
  return {};
}

bool GuardPolicy::begins_again(const GuardSight& sight) {
  const bool has_room = !reason_to_stop(sight);
  return dry_run_ && has_room && sight.now_ns - killed_ns_ >= settings_.rehearse_again_ns;
}

std::int64_t GuardPolicy::next_look_ns(const std::optional<Headroom>& headroom) const {
  if (stage_ == GuardStage::kDone || !headroom) {
    return kLongestLookNs;
  }
  if (stage_ == GuardStage::kKilling) {
    return kKillAgainNs;
  }
  const std::int64_t left = stage_ == GuardStage::kStopping
                                ? headroom->free_bytes - last_reserve(*headroom)
                                : headroom->to_spare_bytes();
  return std::clamp(left / kFastestBytesPerNs, kShortestLookNs, kLongestLookNs);
}

}  // namespace tidemark::guard
