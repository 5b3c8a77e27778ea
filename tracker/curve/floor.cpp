// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/floor.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tidemark::tracker {
namespace {

constexpr double kWidthsPerBlock = 1.25;
constexpr double kFewestFloorBlocks = 4.0;
constexpr double kLongestLoner = 0.125;
constexpr double kMissedDoubts = 3.0;

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
  return std::min(most, static_cast<std::size_t>(std::max(kFewestFloorBlocks, fitting)));
}

// Samples [first, last) of the curve.
struct Block {
  std::size_t first = 0;
  std::size_t last = 0;
};

std::vector<Block> cut(const Curve& curve, std::size_t count, double width) {
  const double start = curve.points.front().x;
  const bool one_each = count == curve.points.size();
  const auto block_of = [&](std::size_t i) {
    if (one_each || width <= 0.0) {
      return one_each ? i : std::size_t{0};
    }
    return std::min(count - 1, static_cast<std::size_t>((curve.points[i].x - start) / width));
  };
  std::vector<Block> blocks;
  std::size_t first = 0;
  for (std::size_t i = 1; i <= curve.points.size(); ++i) {
    if (i == curve.points.size() || block_of(i) != block_of(first)) {
      blocks.push_back({first, i});
      first = i;
    }
  }
  return blocks;
}

// The samples of this block went past its low: they were too far apart just there.
bool missed_its_low(const Curve& curve, const Cycles& cycles, const Block& block) {
  std::size_t low = block.first;
  for (std::size_t i = block.first; i < block.last; ++i) {
    low = curve.points[i].min_bytes < curve.points[low].min_bytes ? i : low;
  }
  return doubt_about_low(curve.points, low) >
         std::max(kMissedDoubts * cycles.low_doubt_bytes, cycles.height_bar_bytes);
}

// A block between excursions that missed its low says nothing about the floor: it joins the one
// before.
std::vector<Block> join_missed(const std::vector<Block>& blocks, const Curve& curve,
                               const Cycles& cycles) {
  if (cycles.excursions.empty()) {
    return blocks;
  }
  std::vector<Block> joined;
  for (const Block& block : blocks) {
    if (!joined.empty() && missed_its_low(curve, cycles, block)) {
      joined.back().last = block.last;
    } else {
      joined.push_back(block);
    }
  }
  return joined;
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
  floor.block_width = curve.span() / static_cast<double>(count);
  for (const Block& block : join_missed(cut(curve, count, floor.block_width), curve, cycles)) {
    floor.points.push_back(floor_point({&curve.points[block.first], block.last - block.first}));
    floor.starts.push_back(curve.points[block.first].x);
  }
  for (const FloorPoint& point : floor.points) {
    floor.x.push_back(point.x);
    floor.bytes.push_back(point.floor_bytes);
  }
  return floor;
}

}  // namespace tidemark::tracker
