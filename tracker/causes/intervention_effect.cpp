// SPDX-License-Identifier: Apache-2.0
#include "tracker/causes/intervention_effect.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "common/units.h"
#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

constexpr std::size_t kFewestPoints = 3;

std::vector<double> times_of(std::span<const FootprintPoint> points) {
  std::vector<double> times;
  for (const FootprintPoint& point : points) {
    times.push_back(point.t_s);
  }
  return times;
}

std::vector<double> bytes_of(std::span<const FootprintPoint> points) {
  std::vector<double> bytes;
  for (const FootprintPoint& point : points) {
    bytes.push_back(static_cast<double>(point.bytes));
  }
  return bytes;
}

}  // namespace

std::uint64_t least_effect_bytes(std::uint64_t footprint_bytes) {
  constexpr std::uint64_t kShare = 50;
  return std::max(4 * kMiB, footprint_bytes / kShare);
}

std::optional<InterventionEffect> judge_effect(std::span<const FootprintPoint> control,
                                               std::span<const FootprintPoint> after) {
  if (control.size() < kFewestPoints || after.size() < kFewestPoints) {
    return std::nullopt;
  }
  const std::vector<double> times = times_of(control);
  const std::vector<double> bytes = bytes_of(control);
  const Line line = theil_sen(times, bytes);
  const std::vector<double> rests = residuals(line, times, bytes);
  const auto [lowest, highest] = std::minmax_element(rests.begin(), rests.end());
  // A growth that was measured over so short a time may go on at another rate, or stop.
  constexpr double kDoubtOfGrowth = 0.5;
  const double middle_s = median(times_of(after));
  const double ahead_s = std::max(0.0, middle_s - control.back().t_s);
  const double noise = *highest - *lowest + kDoubtOfGrowth * std::abs(line.slope) * ahead_s;
  const double after_bytes = median(bytes_of(after));
  const double effect = line.value(middle_s) - after_bytes;

  InterventionEffect result;
  result.before_bytes =
      static_cast<std::uint64_t>(median(bytes_of(control.last((control.size() + 2) / 3))));
  result.after_bytes = static_cast<std::uint64_t>(after_bytes);
  result.effect_bytes = std::llround(effect);
  result.noise_bytes = static_cast<std::uint64_t>(std::llround(noise));
  const auto least = static_cast<double>(least_effect_bytes(result.before_bytes));
  result.outcome = effect >= least && effect >= 2.0 * noise ? InterventionOutcome::kConfirmed
                   : effect + noise < least                 ? InterventionOutcome::kRuledOut
                                                            : InterventionOutcome::kCannotTell;
  return result;
}

InterventionOutcome judge_share(std::uint64_t part_bytes, std::uint64_t whole_bytes) {
  constexpr std::uint64_t kShare = 5;
  return part_bytes > 0 && part_bytes >= whole_bytes / kShare ? InterventionOutcome::kConfirmed
                                                              : InterventionOutcome::kRuledOut;
}

}  // namespace tidemark::tracker
