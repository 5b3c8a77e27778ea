// SPDX-License-Identifier: Apache-2.0
#include "tracker/floor.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tidemark::tracker {
namespace {

constexpr double kWidthsPerBlock = 1.25;
constexpr double kFewestBlocks = 4.0;
constexpr double kLongestLoner = 0.125;

std::size_t block_count(const Curve& curve, const Cycles& cycles) {
  const std::size_t most = std::min(curve.points.size(), Floor::kMostBlocks);
  if (cycles.width <= 0.0 || curve.span() <= 0.0) {
    return most;
  }
  if (cycles.excursions.size() == 1 && cycles.width > kLongestLoner * curve.span()) {
    return most;  // a phase of the run, not a wave
  }
  // A block of one period holds one low of a saw, wherever it begins.
  const double wide = kWidthsPerBlock * cycles.width;
  const double length = cycles.period ? std::min(wide, *cycles.period) : wide;
  const double fitting = std::floor(curve.span() / length);
  return std::min(most, static_cast<std::size_t>(std::max(kFewestBlocks, fitting)));
}

FloorPoint floor_point(std::span<const CurvePoint> block) {
  FloorPoint point;
  point.at = moment_of(block.front());
  point.x = block.front().x;
  point.floor_bytes = block.front().min_bytes;
  double sum = 0.0;
  double samples = 0.0;
  for (const CurvePoint& member : block) {
    const auto weight = static_cast<double>(member.samples);
    if (member.min_bytes < point.floor_bytes) {
      point.floor_bytes = member.min_bytes;
      point.x = member.x;
    }
    point.ceiling_bytes = std::max(point.ceiling_bytes, member.max_bytes);
    sum += member.mean_bytes * weight;
    samples += weight;
  }
  point.mean_bytes = sum / samples;
  return point;
}

}  // namespace

Floor make_floor(const Curve& curve, const Cycles& cycles) {
  Floor floor;
  if (curve.points.empty()) {
    return floor;
  }
  const std::size_t count = block_count(curve, cycles);
  const double start = curve.points.front().x;
  floor.block_width = curve.span() / static_cast<double>(count);
  const bool one_each = count == curve.points.size();
  const auto block_of = [&](std::size_t i) {
    if (one_each || floor.block_width <= 0.0) {
      return one_each ? i : std::size_t{0};
    }
    const double at = (curve.points[i].x - start) / floor.block_width;
    return std::min(count - 1, static_cast<std::size_t>(at));
  };
  std::size_t first = 0;
  for (std::size_t i = 1; i <= curve.points.size(); ++i) {
    if (i == curve.points.size() || block_of(i) != block_of(first)) {
      floor.points.push_back(floor_point({&curve.points[first], i - first}));
      floor.starts.push_back(curve.points[first].x);
      first = i;
    }
  }
  for (const FloorPoint& point : floor.points) {
    floor.x.push_back(point.x);
    floor.bytes.push_back(point.floor_bytes);
  }
  return floor;
}

}  // namespace tidemark::tracker
