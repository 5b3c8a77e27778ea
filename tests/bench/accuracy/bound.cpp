// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tidemark::bench {
namespace {

// Which points make a block: [begin, end) of each, empty ones left out; and their places.
struct Blocks {
  std::vector<std::size_t> begins;
  std::vector<double> places;
  std::size_t end = 0;
};

Blocks blocks_of(std::span<const double> xs, double length) {
  Blocks blocks;
  double current = -1.0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const double block = std::floor((xs[i] - xs.front()) / length);
    if (block != current) {
      current = block;
      blocks.begins.push_back(i);
      blocks.places.push_back(block);
    }
  }
  blocks.end = xs.size();
  return blocks;
}

double slope_of_minima(const Blocks& blocks, std::span<const double> values) {
  const std::size_t m = blocks.begins.size();
  double mean_place = 0.0;
  double mean_floor = 0.0;
  std::vector<double> floors(m);
  for (std::size_t b = 0; b < m; ++b) {
    const std::size_t end = b + 1 < m ? blocks.begins[b + 1] : blocks.end;
    floors[b] = *std::min_element(values.begin() + static_cast<std::ptrdiff_t>(blocks.begins[b]),
                                  values.begin() + static_cast<std::ptrdiff_t>(end));
    mean_floor += floors[b] / static_cast<double>(m);
    mean_place += blocks.places[b] / static_cast<double>(m);
  }
  double xy = 0.0;
  double xx = 0.0;
  for (std::size_t b = 0; b < m; ++b) {
    const double x = blocks.places[b] - mean_place;
    xy += x * (floors[b] - mean_floor);
    xx += x * x;
  }
  return xx > 0.0 ? xy / xx : 0.0;
}

}  // namespace

double block_length(std::span<const double> xs, double period) {
  const double span = xs.back() - xs.front();
  const double interval = span / static_cast<double>(xs.size() - 1);
  return std::max(period, std::min(std::max(span / 20.0, 8.0 * interval), span / 12.0));
}

Bound detection_bound(const Recipe& recipe, std::span<const double> xs, double window_from,
                      Random& random, std::size_t draws) {
  const bool has_period = recipe.wave.kind != WaveKind::kNone &&
                          recipe.wave.kind != WaveKind::kRandom &&
                          recipe.wave.kind != WaveKind::kPoolComesAndGoes;
  Bound bound;
  bound.block_length = block_length(xs, has_period ? recipe.wave.period : 0.0);
  const auto first = std::lower_bound(xs.begin(), xs.end(), window_from);
  const auto window = xs.subspan(static_cast<std::size_t>(first - xs.begin()));
  const Blocks blocks = blocks_of(window, bound.block_length);
  const auto m = static_cast<double>(blocks.begins.size());
  bound.blocks = m;
  double squares = 0.0;
  for (std::size_t i = 0; i < draws; ++i) {
    const double slope = slope_of_minima(blocks, disturbance(recipe, window, random));
    squares += slope * slope / static_cast<double>(draws);
  }
  bound.sigma_bytes = std::sqrt(squares * m * m * m / 12.0);
  bound.rate = 4.0 * std::sqrt(squares) / bound.block_length;
  return bound;
}

}  // namespace tidemark::bench
