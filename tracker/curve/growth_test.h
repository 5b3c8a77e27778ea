// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tracker/curve/models.h"
#include "tracker/curve/series_verdict.h"
#include "tracker/curve/statistics.h"

namespace tidemark::tracker {

inline constexpr std::size_t kFewestBlocks = 4;  // in a window that is judged
inline constexpr std::size_t kSimilarJumps = 3;  // make a leak in steps
inline constexpr double kEndShare = 0.3;         // of its rate, that growth still has at the end
inline constexpr double kDecisive = 6.0;         // difference of information criteria

// Growth below these does not matter in practice. Rates are per unit of the judged axis.
struct Gates {
  double least_rate = 0.0;
  double least_rise_share = 0.01;  // of the floor
  // How much surer than usual a slope must be. Who looks again and again, as the automatic
  // allowance invites to, sees every chance at its worst.
  double strictness = 1.0;
  std::size_t fewest_blocks = kFewestBlocks;
};

enum class Growth {
  kTooShort,  // too few blocks to say anything
  kFlat,      // nothing beyond noise
  kDrift,     // significant, but below the gate
  kSmall,     // fast enough, but it has not yet risen far enough to matter
  kYoung,     // it began lately: too few blocks since
  kUneven,    // not carried by the whole window
  kStopped,   // it rose, and has ended
  kSlowing,   // a curve that ends fits better than a line
  kKeepsRising
};

// What the floor does in one window, and the figures behind it.
struct GrowthTest {
  Growth outcome = Growth::kTooShort;
  std::size_t first = 0;     // of the window that was judged in the end: later, when it began late
  double level_bytes = 0.0;  // at the start of that window
  double slope = 0.0;
  double error = 0.0;  // standard error of `slope`
  double bar = 0.0;    // in standard errors
  double low = 0.0;    // 95 % interval of `slope`
  double high = 0.0;
  double rise_bytes = 0.0;
  double end_share = 1.0;       // rate at the end over `slope`
  double saturation_bic = 0.0;  // > 0: growth that ends fits better
  Noise noise;
  LeakShape shape = LeakShape::kLinear;
  std::vector<Jump> jumps;        // in the window that was given
  std::size_t similar_jumps = 0;  // upwards
};

GrowthTest test_growth(std::span<const double> x, std::span<const double> y, const Gates& gates);

}  // namespace tidemark::tracker
