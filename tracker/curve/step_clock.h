// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/step_count.h"
#include "tracker/curve/series.h"
#include "tracker/curve/series_verdict.h"

namespace tidemark::tracker {

// Where on the axis of steps a moment lies: between two step markers, in proportion to the time.
// Markers come in the order of time.
class StepClock {
 public:
  // A step marker as the job numbers it; numbers that start anew are counted on.
  void mark(double t_s, std::int64_t step);

  bool is_running() const { return last_.has_value(); }
  // kUnknown before the first marker.
  double last_s() const { return last_ ? last_->t_s : kUnknown; }
  double last_step() const { return last_ ? last_->step : kUnknown; }

  // The place of a moment before the last marker; kUnknown before the first one. Exact for moments
  // after the last marker but one.
  double place_before_last(double t_s) const;
  // The place of a moment after the last marker. As long as a step usually takes it belongs to that
  // step; later it is not known whether there is training at all.
  double place_after_last(double t_s) const;
  // How many steps the job had done before `t_s`, the start of a run, as it numbers them. nullopt:
  // it was not training yet, as its first marker came later than others follow each other.
  std::optional<double> steps_done_before(double t_s) const;

 private:
  struct Mark {
    double t_s;
    double step;
  };
  std::optional<double> typical_step_s() const;

  StepCount count_;
  std::optional<Mark> first_;
  std::optional<double> second_s_;  // of the first marker after that one
  std::optional<Mark> previous_;
  std::optional<Mark> last_;
  std::array<double, 64> step_times_{};  // the latest, in a ring
  std::size_t step_times_seen_ = 0;
};

// How long an epoch is, from the markers at which epochs begin: the median distance.
class EpochLength {
 public:
  // Several processes may mark the same epoch: only the first of them counts.
  void mark(std::int64_t epoch, const Moment& at);

  std::optional<double> seconds() const { return median(seconds_); }
  std::optional<double> steps() const { return median(steps_); }

 private:
  static constexpr std::size_t kMost = 1024;  // distances; by then the median is known
  static std::optional<double> median(std::vector<double> distances);

  std::optional<std::int64_t> last_;
  Moment last_at_;
  std::vector<double> seconds_;
  std::vector<double> steps_;
};

}  // namespace tidemark::tracker
