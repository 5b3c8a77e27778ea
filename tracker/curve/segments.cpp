// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/segments.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tracker/curve/models.h"

namespace tidemark::tracker {
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
