// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/bench/accuracy/bound.h"
#include "tests/bench/accuracy/recipe.h"
#include "tracker/curve/judge.h"
#include "tracker/curve/series.h"
#include "tracker/curve/series_verdict.h"

namespace tidemark::bench {

// The families of generated curves; docs/accuracy.md describes them.
enum class Family {
  kStable,
  kLinearWarmup,
  kSaturating,
  kStaircaseEnds,
  kStaircaseLeak,
  kSawtoothFlat,
  kSawtoothRising,
  kSpikes,
  kSpikesOverLeak,
  kWarmupThenLeak,
  kLateOnset,
  kWorkerChurn,
  kPageCache,
  kAutocorrelated,
  kSwapOut,
  kAcceleratingLeak,
  kLateJump,
  kLongWarmup,
  kRelease,
  kSlowDrift,
};
inline constexpr std::size_t kFamilyCount = 20;

// The families take turns.
inline Family family_at(std::uint64_t index) { return static_cast<Family>(index % kFamilyCount); }
std::string_view family_name(Family family);
std::optional<Family> family_from_name(std::string_view name);

// One sample. `footprint_bytes` is what is judged; `rss_bytes` what a rule sees that looks at RSS.
struct Point {
  double t_s = tracker::kUnknown;
  double step = tracker::kUnknown;
  double footprint_bytes = 0.0;
  double rss_bytes = 0.0;
  double rss_file_bytes = 0.0;
  double swap_bytes = 0.0;
};

// A set of verdicts that are all right.
class Verdicts {
 public:
  template <typename... Several>
  static Verdicts of(Several... verdicts) {
    Verdicts set;
    (set.add(verdicts), ...);
    return set;
  }
  void add(tracker::Verdict verdict) { bits_ |= bit(verdict); }
  bool has(tracker::Verdict verdict) const { return (bits_ & bit(verdict)) != 0; }

 private:
  static unsigned bit(tracker::Verdict verdict) { return 1U << static_cast<unsigned>(verdict); }
  unsigned bits_ = 0;
};

struct Truth {
  bool leaks = false;
  double onset = 0.0;       // place on the axis
  double rate = 0.0;        // bytes per axis unit; 0 without a leak
  double warmup_end = 0.0;  // place on the axis; 0 without a warm-up
  std::optional<double> period;
  // Of the window: after onset, allowance and the last change of level, whichever is latest.
  Bound bound;
  // Smallest rate that matters in the window: --min-leak, and 1 % of the floor over the window.
  double gate = 0.0;
  // A leak that nobody may miss: above 5 times the bound, and a tenth above the gate.
  bool due = false;
  bool weak = false;  // above 3 times the bound and a tenth above the gate: few may be missed
  Verdicts right;
};

struct Curve {
  Family family = Family::kStable;
  std::vector<Point> points;
  tracker::Axis axis = tracker::Axis::kTime;
  double allowance_end = 0.0;  // place on the axis
  Recipe recipe;
  Truth truth;

  double x(std::size_t i) const {
    return axis == tracker::Axis::kSteps ? points[i].step : points[i].t_s;
  }
};

// The same curve for the same two numbers, on every machine.
Curve generate(std::uint64_t seed, std::uint64_t index);

// The footprint of the first `count` points.
tracker::Series series_of(const Curve& curve, std::size_t count);
inline tracker::Series series_of(const Curve& curve) {
  return series_of(curve, curve.points.size());
}
// With an explicit allowance that ends at `allowance_end`.
tracker::Options options_of(const Curve& curve);

}  // namespace tidemark::bench
