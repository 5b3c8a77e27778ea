// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tracker/curve/curve_levels.h"
#include "tracker/curve/reading.h"
#include "tracker/curve/series.h"

namespace tidemark::tracker {

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
