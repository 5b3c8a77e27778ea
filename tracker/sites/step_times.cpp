// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/step_times.h"

#include <algorithm>
#include <iterator>

namespace tidemark::tracker {
namespace {

template <typename Mark>
double between(const Mark& before, const Mark& after, double t_s) {
  const double span = after.t_s - before.t_s;
  const double share = span > 0.0 ? std::min(1.0, (t_s - before.t_s) / span) : 1.0;
  return before.step + share * (after.step - before.step);
}

}  // namespace

void StepTimes::mark(double t_s, std::int64_t step) {
  clock_.mark(t_s, step);
  if (!marks_.empty() && (++skipped_ < skip_ || t_s < marks_.back().t_s)) {
    return;
  }
  skipped_ = 0;
  marks_.push_back({t_s, clock_.last_step()});
  if (marks_.size() == kMostMarks) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < marks_.size(); i += 2) {
      marks_[kept++] = marks_[i];
    }
    marks_.resize(kept);
    skip_ *= 2;
  }
}

double StepTimes::at(double t_s) const {
  if (marks_.empty() || t_s < marks_.front().t_s) {
    return kUnknown;
  }
  if (t_s > clock_.last_s()) {
    return clock_.place_after_last(t_s);
  }
  const auto after = std::upper_bound(marks_.begin(), marks_.end(), t_s,
                                      [](double at, const Mark& mark) { return at < mark.t_s; });
  const Mark last{clock_.last_s(), clock_.last_step()};
  return between(*std::prev(after), after == marks_.end() ? last : *after, t_s);
}

}  // namespace tidemark::tracker
