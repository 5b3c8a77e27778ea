// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>

#include "tracker/curve/series.h"
#include "tracker/curve/series_verdict.h"

namespace tidemark::tracker {

// A stretch of a run, ends included: in seconds, or in steps where a curve knows no time.
struct Window {
  double from = -std::numeric_limits<double>::infinity();
  double to = std::numeric_limits<double>::infinity();
};

// Where a curve stood in a window. First and last are the low-water marks of its first and last
// tenth, so that a spike at either end is no growth.
struct Levels {
  double first_bytes = 0.0;
  double last_bytes = 0.0;
  double max_bytes = 0.0;

  double growth_bytes() const { return last_bytes - first_bytes; }
};

// nullopt: the curve has nothing in the window.
std::optional<Levels> levels_in(const Series& series, const Window& window);
// nullopt: the curve is unknown.
std::optional<double> growth_in(const Series& series, const Window& window);
// The last cell that begins at or before `place`, else the first one; nullptr: no cells.
const Cell* cell_before(const Series& series, double place);
// The first cell that begins at or after `place`, else the last one; nullptr: no cells.
const Cell* cell_after(const Series& series, double place);

// How a curve came up in a window, whatever the verdict.
enum class GrowthForm {
  kNone,
  kStraight,
  kSlowing,  // ever slower
  kOneJump,
};

GrowthForm form_of(const Series& series, const Window& window);

// Where the largest single rise of a window ended; nullopt: it never rose.
std::optional<Moment> largest_rise(const Series& series, const Window& window);

// True when the spikes of a curve rise slowly and fall at once.
bool is_sawtooth(const Series& series, const Pattern& spikes);

}  // namespace tidemark::tracker
