// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/models.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

constexpr int kTauSteps = 24;
constexpr double kShortestTau = 0.05;  // of the span
constexpr double kLongestTau = 3.0;
constexpr double kJumpSigmas = 5.0;
constexpr double kNeighbourShare = 0.35;  // of a jump: the differences beside it are smaller
constexpr double kStays = 0.6;

// Coefficients of y = c0 + c1 * u + c2 * v and their covariance for noise of 1.
struct Plane {
  std::array<double, 3> coefficients{};
  std::array<std::array<double, 3>, 3> covariance{};
};

// Least squares by normal equations; u and v are scaled to about 1. nullopt: u and v do not tell
// the coefficients apart.
std::optional<Plane> fit_plane(std::span<const double> u, std::span<const double> v,
                               std::span<const double> y) {
  std::array<std::array<double, 7>, 3> m{};  // normal matrix | right side | unit matrix
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::array<double, 3> row{1.0, u[i], v[i]};
    for (std::size_t a = 0; a < 3; ++a) {
      for (std::size_t b = 0; b < 3; ++b) {
        m[a][b] += row[a] * row[b];
      }
      m[a][3] += row[a] * y[i];
    }
  }
  for (std::size_t a = 0; a < 3; ++a) {
    m[a][4 + a] = 1.0;
  }
  for (std::size_t pivot = 0; pivot < 3; ++pivot) {
    std::size_t best = pivot;
    for (std::size_t row = pivot + 1; row < 3; ++row) {
      best = std::abs(m[row][pivot]) > std::abs(m[best][pivot]) ? row : best;
    }
    std::swap(m[pivot], m[best]);
    if (std::abs(m[pivot][pivot]) < 1e-9) {
      return std::nullopt;
    }
    for (std::size_t row = 0; row < 3; ++row) {
      const double factor = row == pivot ? 0.0 : m[row][pivot] / m[pivot][pivot];
      for (std::size_t column = pivot; column < 7; ++column) {
        m[row][column] -= factor * m[pivot][column];
      }
    }
  }
  Plane plane;
  for (std::size_t a = 0; a < 3; ++a) {
    plane.coefficients[a] = m[a][3] / m[a][a];
    for (std::size_t b = 0; b < 3; ++b) {
      plane.covariance[a][b] = m[a][4 + b] / m[a][a];
    }
  }
  return plane;
}

std::vector<double> steps_beyond_trend(std::span<const double> x, std::span<const double> y) {
  std::vector<double> slopes;
  for (std::size_t i = 1; i < x.size(); ++i) {
    slopes.push_back((y[i] - y[i - 1]) / (x[i] - x[i - 1]));
  }
  const double usual = median(std::move(slopes));
  std::vector<double> steps = differences(y);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i] -= usual * (x[i + 1] - x[i]);
  }
  return steps;
}

}  // namespace

std::optional<Saturation> fit_saturation(std::span<const double> x, std::span<const double> y) {
  const double start = x.front();
  const double span = x.back() - start;
  if (x.size() < 4 || span <= 0.0) {
    return std::nullopt;
  }
  std::optional<Saturation> best;
  std::vector<double> shape(x.size());
  for (int i = 0; i < kTauSteps; ++i) {
    const double share = static_cast<double>(i) / (kTauSteps - 1);
    const double tau = span * kShortestTau * std::pow(kLongestTau / kShortestTau, share);
    for (std::size_t j = 0; j < x.size(); ++j) {
      shape[j] = 1.0 - std::exp(-(x[j] - start) / tau);
    }
    const Line line = fit_line(shape, y);
    const double squares = sum_of_squares(residuals(line, shape, y));
    if (line.slope > 0.0 && (!best || squares < best->squares)) {
      best = Saturation{line.value(1.0), tau, squares};
    }
  }
  return best;
}

// In terms of the slope after the kink: y = c0 + c1 * min(x, at) + c2 * max(0, x - at).
Kink fit_kink_at(std::span<const double> x, std::span<const double> y, double at) {
  const double scale = std::max(x.back() - x.front(), 1e-300);
  std::vector<double> before(x.size());
  std::vector<double> after(x.size());
  Kink kink;
  kink.x = at;
  for (std::size_t i = 0; i < x.size(); ++i) {
    before[i] = (std::min(x[i], at) - x.front()) / scale;
    after[i] = std::max(0.0, x[i] - at) / scale;
    kink.index += x[i] < at ? 1U : 0U;
  }
  const auto plane = fit_plane(before, after, y);
  if (!plane) {
    const Line line = fit_line(x, y);
    kink.before = kink.after = line.slope;
    kink.after_error = kink.bend_error = 1.0 / std::sqrt(std::max(spread(x), 1e-300));
    kink.residuals = residuals(line, x, y);
    kink.squares = sum_of_squares(kink.residuals);
    return kink;
  }
  const auto& [level, slope_before, slope_after] = plane->coefficients;
  const auto& covariance = plane->covariance;
  kink.before = slope_before / scale;
  kink.after = slope_after / scale;
  kink.after_error = std::sqrt(std::max(0.0, covariance[2][2])) / scale;
  kink.bend_error =
      std::sqrt(std::max(0.0, covariance[1][1] + covariance[2][2] - 2.0 * covariance[1][2])) /
      scale;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double rest = y[i] - level - slope_before * before[i] - slope_after * after[i];
    kink.residuals.push_back(rest);
    kink.squares += rest * rest;
  }
  return kink;
}

std::optional<Kink> fit_kink(std::span<const double> x, std::span<const double> y,
                             std::size_t least) {
  std::optional<Kink> best;
  for (std::size_t i = least; i + least <= x.size(); ++i) {
    const Kink kink = fit_kink_at(x, y, x[i]);
    if (!best || kink.squares < best->squares) {
      best = kink;
    }
  }
  return best;
}

std::vector<Jump> find_jumps(std::span<const double> x, std::span<const double> y,
                             double least_bytes) {
  // Beyond what the trend makes of the distance between two points.
  const std::vector<double> steps = steps_beyond_trend(x, y);
  const double bar = std::max(least_bytes, kJumpSigmas * robust_sigma(steps));
  const auto around = [&](std::size_t first, std::size_t last) {
    return median(std::vector<double>(y.begin() + static_cast<std::ptrdiff_t>(first),
                                      y.begin() + static_cast<std::ptrdiff_t>(last)));
  };
  std::vector<Jump> jumps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double height = steps[i];
    const auto beside = [&](std::size_t j) { return std::abs(steps[j]); };
    const double most_beside = kNeighbourShare * std::abs(height);
    if (std::abs(height) < bar || (i > 0 && beside(i - 1) > most_beside) ||
        (i + 1 < steps.size() && beside(i + 1) > most_beside)) {
      continue;
    }
    const std::size_t after = i + 1;
    const double stays =
        around(after, std::min(y.size(), after + 3)) - around(after > 3 ? after - 3 : 0, after);
    if (stays * height > 0.0 && std::abs(stays) >= kStays * std::abs(height)) {
      jumps.push_back({after, x[after], height});
    }
  }
  return jumps;
}

SlopeWithJumps take_out_jumps(std::span<const double> x, std::span<const double> y,
                              const std::vector<Jump>& jumps) {
  struct Level {
    std::size_t first;
    std::size_t last;
    double x_mean;
    double y_mean;
  };
  std::vector<Level> levels;
  double above = 0.0;
  SlopeWithJumps result;
  for (std::size_t i = 0; i <= jumps.size(); ++i) {
    const std::size_t first = i == 0 ? 0 : jumps[i - 1].index;
    const std::size_t last = i == jumps.size() ? x.size() : jumps[i].index;
    const auto xs = x.subspan(first, last - first);
    const Line line = fit_line(xs, y.subspan(first, last - first));
    const double inside = spread(xs);
    levels.push_back({first, last, line.at, line.level});
    above += line.slope * inside;
    result.information += inside;
  }
  const double slope = result.information > 0.0 ? above / result.information : 0.0;
  result.smooth.assign(y.begin(), y.end());
  for (std::size_t i = 1; i < levels.size(); ++i) {
    const Level& base = levels.front();
    const double height =
        (levels[i].y_mean - base.y_mean) - slope * (levels[i].x_mean - base.x_mean);
    for (std::size_t j = levels[i].first; j < levels[i].last; ++j) {
      result.smooth[j] -= height;
    }
  }
  return result;
}

double fit_levels(std::span<const double> y, std::size_t levels) {
  const std::size_t n = y.size();
  std::vector<double> sums(n + 1, 0.0);
  std::vector<double> squares(n + 1, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    const double value = y[i] - y.front();
    sums[i + 1] = sums[i] + value;
    squares[i + 1] = squares[i] + value * value;
  }
  const auto misfit = [&](std::size_t first, std::size_t last) {
    const double sum = sums[last] - sums[first];
    return std::max(0.0,
                    squares[last] - squares[first] - sum * sum / static_cast<double>(last - first));
  };
  std::vector<double> best(n + 1, 0.0);  // of the first i points with the levels so far
  for (std::size_t i = 1; i <= n; ++i) {
    best[i] = misfit(0, i);
  }
  for (std::size_t level = 1; level < levels; ++level) {
    for (std::size_t i = n; i > level; --i) {
      for (std::size_t j = level; j < i; ++j) {
        best[i] = std::min(best[i], best[j] + misfit(j, i));
      }
    }
  }
  return best[n];
}

double information_criterion(double squares, std::size_t points, double effective,
                             std::size_t parameters, double least_sigma) {
  const double variance =
      std::max(squares / static_cast<double>(points), least_sigma * least_sigma);
  return effective * std::log(variance) +
         static_cast<double>(parameters) * std::log(std::max(2.0, effective));
}

namespace {

constexpr std::size_t kMostSegments = 6;
constexpr std::size_t kPointsPerSegment = 7;
constexpr std::size_t kLeastPoints = 4;
constexpr std::size_t kParametersEach = 3;  // level, slope, place

// Misfit of one line over any stretch, in constant time.
class Misfit {
 public:
  Misfit(std::span<const double> x, std::span<const double> y)
      : x0_(x.front()), y0_(y.front()), sums_(x.size() + 1) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double u = x[i] - x0_;
      const double v = y[i] - y0_;
      const Sums& s = sums_[i];
      sums_[i + 1] = {s.u + u, s.v + v, s.uu + u * u, s.uv + u * v, s.vv + v * v};
    }
  }

  double of(std::size_t first, std::size_t last) const {
    const Sums& a = sums_[first];
    const Sums& b = sums_[last];
    const auto n = static_cast<double>(last - first);
    const double u = (b.u - a.u) / n;
    const double v = (b.v - a.v) / n;
    const double uu = (b.uu - a.uu) - n * u * u;
    const double uv = (b.uv - a.uv) - n * u * v;
    const double vv = (b.vv - a.vv) - n * v * v;
    return std::max(0.0, uu > 0.0 ? vv - uv * uv / uu : vv);
  }

 private:
  struct Sums {
    double u = 0, v = 0, uu = 0, uv = 0, vv = 0;
  };
  double x0_;
  double y0_;
  std::vector<Sums> sums_;
};

}  // namespace

std::vector<Segment> find_segments(std::span<const double> x, std::span<const double> y,
                                   double least_sigma) {
  std::vector<Segment> segments;
  const std::size_t n = x.size();
  if (n < kLeastPoints) {
    return segments;
  }
  const Misfit misfit(x, y);
  const std::size_t most = std::clamp<std::size_t>(n / kPointsPerSegment, 1, kMostSegments);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  // best[k][i]: least misfit of the first i points in k + 1 pieces; cut[k][i]: where the last
  // begins
  std::vector<std::vector<double>> best(most, std::vector<double>(n + 1, kNever));
  std::vector<std::vector<std::size_t>> cut(most, std::vector<std::size_t>(n + 1, 0));
  for (std::size_t i = kLeastPoints; i <= n; ++i) {
    best[0][i] = misfit.of(0, i);
  }
  for (std::size_t k = 1; k < most; ++k) {
    for (std::size_t i = (k + 1) * kLeastPoints; i <= n; ++i) {
      for (std::size_t j = k * kLeastPoints; j + kLeastPoints <= i; ++j) {
        const double total = best[k - 1][j] + misfit.of(j, i);
        if (total < best[k][i]) {
          best[k][i] = total;
          cut[k][i] = j;
        }
      }
    }
  }
  std::size_t pieces = 0;
  double least = kNever;
  for (std::size_t k = 0; k < most; ++k) {
    const double score = information_criterion(best[k][n], n, static_cast<double>(n),
                                               2 * kParametersEach * (k + 1), least_sigma);
    if (score < least) {
      least = score;
      pieces = k;
    }
  }
  std::size_t last = n;
  for (std::size_t k = pieces + 1; k-- > 0;) {
    const std::size_t first = k == 0 ? 0 : cut[k][last];
    segments.push_back(
        {first, last, fit_line(x.subspan(first, last - first), y.subspan(first, last - first))});
    last = first;
  }
  std::reverse(segments.begin(), segments.end());
  return segments;
}

Noise noise_around_segments(std::span<const double> x, std::span<const double> y,
                            double least_sigma) {
  std::vector<double> rest;
  const std::vector<Segment> segments = find_segments(x, y, least_sigma);
  for (const Segment& segment : segments) {
    const std::size_t count = segment.last - segment.first;
    const auto part =
        residuals(segment.line, x.subspan(segment.first, count), y.subspan(segment.first, count));
    rest.insert(rest.end(), part.begin(), part.end());
  }
  return noise_of(rest, 2 * segments.size(), least_sigma);
}

}  // namespace tidemark::tracker
