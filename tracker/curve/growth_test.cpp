// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/growth_test.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "tracker/curve/models.h"

namespace tidemark::tracker {
namespace {

constexpr double kQuietest = 5e-5;  // of the level: no floor is steadier than that
constexpr double kLeastJump = 0.005;
constexpr std::size_t kBlocksForJumps = 8;
constexpr std::size_t kBlocksForKink = 10;
constexpr std::size_t kLeastBesideKink = 4;
constexpr std::size_t kBlocksAfterOnset = 6;
constexpr double kOnsetShare = 0.3;
constexpr double kEndPart = 0.15;
constexpr double kClearly = 2.5;  // standard errors
constexpr double kEachThird = 0.15;
constexpr double kBetweenThirds = 0.4;  // two thirds of a straight rise lie between their middles
constexpr double kAccelerating = 1.5;
constexpr double kSimilar = 3.0;            // highest over lowest
constexpr double kCarriedByJumps = 0.6;     // of the rise
constexpr double kPatienceAfterJump = 1.2;  // of the mean pause between jumps
constexpr int kMostOnsets = 2;
constexpr double kStricterAfterBreak = 1.5;
constexpr std::size_t kMostJumps = 2;

struct FloorWindow {
  std::span<const double> x;
  std::span<const double> y;
  // Jumps that were taken out make a slope less certain: by this share of the spread.
  double certainty = 1.0;

  std::size_t size() const { return x.size(); }
  double span() const { return x.back() - x.front(); }
  double error_of_unit() const { return 1.0 / std::sqrt(std::max(certainty * spread(x), 1e-300)); }
  FloorWindow from(std::size_t first) const {
    return {x.subspan(first), y.subspan(first), certainty};
  }
};

double least_sigma(std::span<const double> y) {
  return kQuietest * std::abs(median({y.begin(), y.end()}));
}

std::vector<Jump> upward(const std::vector<Jump>& jumps) {
  std::vector<Jump> up;
  std::copy_if(jumps.begin(), jumps.end(), std::back_inserter(up),
               [](const Jump& jump) { return jump.height_bytes > 0.0; });
  return up;
}

// Three or more jumps of one kind that carry the rise, and no pause since that is longer than
// theirs.
bool climbs_by_jumps(const FloorWindow& window, GrowthTest& test, const Gates& gates) {
  const std::vector<Jump> up = upward(test.jumps);
  if (up.size() < kSimilarJumps) {
    return false;
  }
  std::vector<double> heights;
  double sum = 0.0;
  for (const Jump& jump : up) {
    heights.push_back(jump.height_bytes);
    sum += jump.height_bytes;
  }
  const double typical = median(heights);
  std::size_t similar = 0;
  for (const double height : heights) {
    similar += height <= kSimilar * typical && height >= typical / kSimilar ? 1U : 0U;
  }
  test.similar_jumps = similar;
  const double rise = window.y.back() - window.y.front();
  if (similar < kSimilarJumps || sum < kCarriedByJumps * rise || rise < 0.5 * sum) {
    return false;
  }
  const double pause = (up.back().x - up.front().x) / static_cast<double>(up.size() - 1);
  const Line line = fit_line(window.x, window.y);
  test.noise = noise_of(residuals(line, window.x, window.y), 2, least_sigma(window.y));
  test.level_bytes = window.y.front();
  test.slope = line.slope;
  test.error = test.noise.sigma / std::sqrt(spread(window.x));
  test.bar = gates.strictness * significance_bar(degrees_of_freedom(test.noise, window.size()));
  const double width = interval_width(static_cast<double>(up.size()));
  test.low = test.slope - width * test.error;
  test.high = test.slope + width * test.error;
  test.rise_bytes = rise;
  test.shape = LeakShape::kSteps;
  if (window.x.back() - up.back().x > kPatienceAfterJump * pause) {
    test.outcome = Growth::kStopped;
  } else if (test.slope < gates.least_rate) {
    test.outcome = Growth::kDrift;
  } else if (rise < gates.least_rise_share * test.level_bytes) {
    test.outcome = Growth::kSmall;
  } else {
    test.outcome = Growth::kKeepsRising;
  }
  return true;
}

// A bend that one line misses looks like noise that wanders, but is none.
Noise quieter(const Noise& a, const Noise& b) { return b.long_run < a.long_run ? b : a; }

// Rises in each third, not only in one of them.
bool is_sustained(const FloorWindow& window, double rise_bytes) {
  const std::size_t third = window.size() / 3;
  if (third < 2) {
    return true;
  }
  const auto level = [&](std::size_t first, std::size_t last) {
    return median({window.y.begin() + static_cast<std::ptrdiff_t>(first),
                   window.y.begin() + static_cast<std::ptrdiff_t>(last)});
  };
  const double low = level(0, third);
  const double middle = level(third, window.size() - third);
  const double high = level(window.size() - third, window.size());
  const double least = kEachThird * (high - low);
  return high - low >= kBetweenThirds * rise_bytes && middle - low >= least &&
         high - middle >= least;
}

double best_kink_squares(const FloorWindow& window) {
  const auto kink = fit_kink(window.x, window.y, kLeastBesideKink);
  return kink ? kink->squares : std::numeric_limits<double>::infinity();
}

GrowthTest test_slope(const FloorWindow& window, const Gates& gates, int onsets_left);

// One line through the window.
GrowthTest test_straight(const FloorWindow& window, const Gates& gates) {
  GrowthTest test;
  const double least = least_sigma(window.y);
  const Line line = fit_line(window.x, window.y);
  const std::vector<double> rest = residuals(line, window.x, window.y);
  test.noise = quieter(noise_of(rest, 2, least), noise_around_segments(window.x, window.y, least));
  test.level_bytes = line.value(window.x.front());
  test.slope = line.slope;
  test.error = test.noise.long_run * window.error_of_unit();
  const double freedom = degrees_of_freedom(test.noise, window.size());
  test.bar = gates.strictness * significance_bar(freedom);
  const double width = interval_width(freedom);
  test.low = test.slope - width * test.error;
  test.high = test.slope + width * test.error;
  test.rise_bytes = test.slope * window.span();

  const auto criterion = [&](double squares, std::size_t parameters) {
    return information_criterion(squares, window.size(), test.noise.effective, parameters, least);
  };
  const double straight = criterion(sum_of_squares(rest), 2);
  if (const auto saturation = fit_saturation(window.x, window.y)) {
    test.saturation_bic = straight - criterion(saturation->squares, 3);
  }
  const Kink end = fit_kink_at(window.x, window.y, window.x.back() - kEndPart * window.span());
  test.end_share = test.slope > 0.0 ? end.after / test.slope : 0.0;
  // The end alone says little under noise: it must be clear that it differs from the rest.
  const bool stopped = test.end_share < kEndShare &&
                       end.before - end.after >= kClearly * test.noise.long_run * end.bend_error;
  const Kink half = fit_kink_at(window.x, window.y, window.x.front() + 0.5 * window.span());
  if (half.after > kAccelerating * half.before &&
      straight - criterion(half.squares, 3) > kDecisive) {
    test.shape = LeakShape::kAccelerating;
  }

  const double bent = criterion(best_kink_squares(window), 4);
  double levels = criterion(fit_levels(window.y, 2), 3);
  levels = std::min(levels, criterion(fit_levels(window.y, 3), 5));
  const bool only_jumps = std::min(straight, bent) - levels >= kDecisive;

  if (test.slope < test.bar * test.error) {
    test.outcome = Growth::kFlat;
  } else if (test.slope < gates.least_rate) {
    test.outcome = Growth::kDrift;
  } else if (stopped) {
    test.outcome = Growth::kStopped;
  } else if (test.saturation_bic >= kDecisive) {
    test.outcome = Growth::kSlowing;
  } else if (only_jumps || !is_sustained(window, test.rise_bytes)) {
    test.outcome = Growth::kUneven;
  } else if (test.rise_bytes < gates.least_rise_share * test.level_bytes) {
    test.outcome = Growth::kSmall;
  } else {
    test.outcome = Growth::kKeepsRising;
  }
  return test;
}

// Where the window bends: growth that began late is judged from there, and so is what remains after
// growth that fell off to a slower one. nullopt: one line is as good.
std::optional<GrowthTest> test_after_bend(const FloorWindow& window, const Gates& gates,
                                          int onsets_left) {
  if (window.size() < kBlocksForKink || onsets_left == 0) {
    return std::nullopt;
  }
  const double least = least_sigma(window.y);
  const auto kink = fit_kink(window.x, window.y, kLeastBesideKink);
  if (!kink) {
    return std::nullopt;
  }
  const Noise noise = quieter(noise_of(kink->residuals, 4, least),
                              noise_around_segments(window.x, window.y, least));
  const auto criterion = [&](double squares, std::size_t parameters) {
    return information_criterion(squares, window.size(), noise.effective, parameters, least);
  };
  const Line line = fit_line(window.x, window.y);
  const double straight = criterion(sum_of_squares(residuals(line, window.x, window.y)), 2);
  const double bent = criterion(kink->squares, 4);
  if (straight - bent < kDecisive) {
    return std::nullopt;
  }
  const auto saturation = fit_saturation(window.x, window.y);
  const bool began_late = kink->after > 0.0 && kink->before < kOnsetShare * kink->after;
  const bool breaks_off = kink->before > kink->after &&
                          (!saturation || criterion(saturation->squares, 3) - bent >= kDecisive);
  if (!began_late && !breaks_off) {
    return std::nullopt;
  }
  // What remains was picked for its bend: it must be surer.
  Gates after = gates;
  after.strictness *= breaks_off ? kStricterAfterBreak : 1.0;
  GrowthTest rest = test_slope(window.from(kink->index), after, onsets_left - 1);
  rest.first += kink->index;
  if (began_late && rest.outcome != Growth::kFlat && rest.outcome != Growth::kDrift &&
      window.size() - rest.first < kBlocksAfterOnset) {
    rest.outcome = Growth::kYoung;
  }
  if (breaks_off && rest.outcome == Growth::kFlat && line.slope > 0.0) {
    rest.outcome = Growth::kStopped;
  }
  return rest;
}

GrowthTest test_slope(const FloorWindow& window, const Gates& gates, int onsets_left) {
  if (window.size() < gates.fewest_blocks || window.span() <= 0.0) {
    return {};
  }
  GrowthTest straight = test_straight(window, gates);
  const auto later = test_after_bend(window, gates, onsets_left);
  if (!later) {
    return straight;
  }
  // Growth that gets faster and faster bends too, and there is less of it after each bend.
  const bool accelerates =
      straight.outcome == Growth::kKeepsRising && straight.shape == LeakShape::kAccelerating;
  return accelerates && later->outcome != Growth::kKeepsRising ? straight : *later;
}

}  // namespace

GrowthTest test_growth(std::span<const double> x, std::span<const double> y, const Gates& gates) {
  FloorWindow window{x, y};
  if (x.size() < gates.fewest_blocks || window.span() <= 0.0) {
    return {};
  }
  std::vector<Jump> jumps;
  if (x.size() >= kBlocksForJumps) {
    jumps = find_jumps(x, y, kLeastJump * std::abs(median({y.begin(), y.end()})));
  }
  GrowthTest by_jumps;
  by_jumps.jumps = jumps;
  if (climbs_by_jumps(window, by_jumps, gates)) {
    return by_jumps;
  }
  if (jumps.size() > kMostJumps) {  // up and down: a wave, or workers that come and go
    jumps.clear();
  }
  const SlopeWithJumps without = take_out_jumps(x, y, jumps);
  window.y = without.smooth;
  window.certainty = without.information / spread(x);
  GrowthTest test = test_slope(window, gates, kMostOnsets);
  test.jumps = std::move(jumps);
  test.similar_jumps = by_jumps.similar_jumps;
  return test;
}

}  // namespace tidemark::tracker
