// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tracker/curve/curve.h"

namespace tidemark::tracker {

// Memory that rose and came back: a spike, or one tooth of a saw. Indices into Curve::points.
struct Excursion {
  std::size_t from = 0;  // the low before
  std::size_t peak = 0;
  std::size_t to = 0;         // the low after
  double height_bytes = 0.0;  // above the higher of the two lows
  double width = 0.0;         // on the axis: how long it was off the floor
};

struct Cycles {
  std::vector<Excursion> excursions;
  double height_bytes = 0.0;      // median
  double height_bar_bytes = 0.0;  // what an excursion had to exceed
  double width = 0.0;             // nine of ten are shorter; 0: none
  std::optional<double> period;   // on the axis, when they come regularly
  double low_doubt_bytes = 0.0;   // of the lows after them, median
};

// Excursions that stand out of the noise. Growth that has not come back yet is none.
Cycles find_cycles(const Curve& curve);

// How much deeper than its sample a low may have been: whether a sample catches the curve at its
// lowest is chance where it turns sharply. 0: at either end of the curve.
double doubt_about_low(const std::vector<CurvePoint>& points, std::size_t low);

}  // namespace tidemark::tracker
