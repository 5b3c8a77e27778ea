// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/step_count.h"
#include "tracker/curve/series.h"

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
  // step; later, nobody knows whether there is training at all.
  double place_after_last(double t_s) const;

 private:
  struct Mark {
    double t_s;
    double step;
  };
  std::optional<double> typical_step_s() const;

  StepCount count_;
  std::optional<Mark> previous_;
  std::optional<Mark> last_;
  std::array<double, 64> step_times_{};  // the latest, in a ring
  std::size_t step_times_seen_ = 0;
};

}  // namespace tidemark::tracker
