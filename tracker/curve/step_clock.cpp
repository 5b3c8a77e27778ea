// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/step_clock.h"

#include <algorithm>

namespace tidemark::tracker {
namespace {

constexpr double kSoonAfter = 1.5;  // times as long as from the first marker to the second
constexpr double kAtOnceS = 2.0;    // what is read from a log has the time of the next tick

}  // namespace

void StepClock::mark(double t_s, std::int64_t step) {
  const auto place = static_cast<double>(count_.add_numbered(step));
  if (last_ && place > last_->step) {
    const double steps = place - last_->step;
    step_times_[step_times_seen_++ % step_times_.size()] = (t_s - last_->t_s) / steps;
  }
  previous_ = last_;
  last_ = Mark{t_s, place};
  if (!first_) {
    first_ = last_;
  } else if (!second_s_ && t_s > first_->t_s) {
    second_s_ = t_s;
  }
}

double StepClock::place_before_last(double t_s) const {
  if (!previous_ || t_s < previous_->t_s) {
    return kUnknown;
  }
  const double span = last_->t_s - previous_->t_s;
  const double share = span > 0.0 ? std::min(1.0, (t_s - previous_->t_s) / span) : 1.0;
  return previous_->step + share * (last_->step - previous_->step);
}

double StepClock::place_after_last(double t_s) const {
  if (!last_) {
    return kUnknown;
  }
  const auto typical = typical_step_s();
  const double since = t_s - last_->t_s;
  const bool is_in_step = since <= 0.0 || (typical && since <= *typical);
  return is_in_step ? last_->step : kUnknown;
}

std::optional<double> StepClock::steps_done_before(double t_s) const {
  if (!first_ || !second_s_ || first_->step <= 0.0) {
    return std::nullopt;
  }
  const double waited = first_->t_s - t_s;
  const double patience = std::max(kSoonAfter * (*second_s_ - first_->t_s), kAtOnceS);
  return waited <= patience ? std::optional(first_->step) : std::nullopt;
}

std::optional<double> StepClock::typical_step_s() const {
  const std::size_t count = std::min(step_times_seen_, step_times_.size());
  if (count == 0) {
    return std::nullopt;
  }
  std::array<double, 64> sorted = step_times_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count));
  return *middle;
}

namespace {

void keep_distance(std::vector<double>& distances, const std::optional<double>& from,
                   const std::optional<double>& to, double epochs, std::size_t most) {
  if (from && to && *to > *from && distances.size() < most) {
    distances.push_back((*to - *from) / epochs);
  }
}

}  // namespace

void EpochLength::mark(std::int64_t epoch, const Moment& at) {
  if (last_ && epoch <= *last_) {
    return;
  }
  if (last_) {
    const double epochs = static_cast<double>(epoch) - static_cast<double>(*last_);
    keep_distance(seconds_, last_at_.t_s, at.t_s, epochs, kMost);
    keep_distance(steps_, last_at_.step, at.step, epochs, kMost);
  }
  last_ = epoch;
  last_at_ = at;
}

std::optional<double> EpochLength::median(std::vector<double> distances) {
  if (distances.empty()) {
    return std::nullopt;
  }
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

}  // namespace tidemark::tracker
