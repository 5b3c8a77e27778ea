// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "tests/bench/accuracy/scoring.h"
#include "tracker/curve/judge.h"
#include "tracker/curve/series.h"

namespace tidemark::bench {

// A curve that somebody measured, with the class that its cause gives it.
struct RealCurve {
  std::string id;
  std::string truth;  // "warmup", "stable", "leak", ...
  bool is_steps = false;
  std::vector<double> xs;
  std::vector<double> bytes;

  bool leaks() const { return truth == "leak"; }
};

Result<std::vector<RealCurve>> load_real_curves(const std::string& path);

tracker::Series series_of(const RealCurve& curve, std::size_t count);
// An allowance that leaves the last 60 % of the points, 4 at the least; nullopt under 6 points.
std::optional<tracker::Options> explicit_warmup(const RealCurve& curve);

// Judges every curve and every prefix of it, prints the table, adds the bars.
void judge_real_curves(const std::vector<RealCurve>& curves, Bars& bars);

}  // namespace tidemark::bench
