// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::tracker {

// In the order of precedence, the weakest first.
enum class Verdict {
  kStable,   // no growth beyond noise
  kWarmup,   // grew, then settled
  kSpikes,   // excursions that come back, floor flat
  kGrowing,  // rising; too early to say whether it ends
  kLeak,     // the floor keeps rising after warm-up
};

// What growth is counted against: the steadier one that is known.
enum class Axis { kTime, kSteps };

// A place in the run on whichever axes are known.
struct Moment {
  std::optional<double> t_s;
  std::optional<double> step;
};

// A growth with its 95 % interval, against the axis that was judged on. The other axis, where it
// is known too, follows from the mean pace of the run.
struct GrowthRate {
  std::optional<double> bytes_per_s;
  std::optional<double> low_bytes_per_s;
  std::optional<double> high_bytes_per_s;
  std::optional<double> bytes_per_step;
  std::optional<double> low_bytes_per_step;
  std::optional<double> high_bytes_per_step;
};

enum class PatternKind {
  kWarmup,  // growth that has ended
  kStep,    // one jump that stays
  kSpikes,
  kDrift,     // a significant trend, too small to matter
  kGrowth,    // growth that may end or not
  kLateRise,  // it rises at the end, fast enough for a leak, but not yet far enough to count
  kLeak,
  kRelease,   // the floor fell and stayed low
  kTeardown,  // memory given back at the very end; cut off before anything was judged
};

enum class LeakShape { kLinear, kSteps, kAccelerating };

struct Pattern {
  PatternKind kind = PatternKind::kWarmup;
  Moment from;
  Moment to;
  double growth_bytes = 0.0;  // over [from, to]; negative for kRelease and kTeardown
  GrowthRate rate;            // of kWarmup, kGrowth, kDrift, kLeak
  LeakShape shape = LeakShape::kLinear;
  // Of kSpikes and kStep.
  double height_bytes = 0.0;  // median
  double highest_bytes = 0.0;
  std::uint64_t count = 0;
  std::optional<double> period_s;  // only when they come regularly
  std::optional<double> period_steps;
};

// One fact that the verdict rests on: what was measured, and what it was measured against.
enum class EvidenceKind {
  kPoints,           // samples; bar: needed for any verdict
  kFloorRise,        // bytes, first to last floor of the judged window; bar: 1 % of the floor
  kSlopeInSigmas,    // slope of the floor over its standard error; bar: significance
  kRateAgainstGate,  // bytes per axis unit; bar: --min-leak
  kStillRising,      // rate at the end over the mean rate; bar: 0.3
  kSaturationBic,    // how much better a curve that ends fits than a line; bar: 6
  kSlowingDown,      // rate of the last third over that of the middle third, since the start
  kBlocksInWindow,   // floor blocks after the allowance; bar: needed
  kAllowanceEnd,     // place on the axis where the allowance ends; value: end of the data
  kStillSince,       // share of the span that the floor has stood still; bar: 0.2
  kEqualJumps,       // similar jumps of the floor; bar: 3
  kSpikeHeight,      // bytes; bar: noise that it had to exceed
  kNoise,            // bytes, one sigma of the floor, autocorrelation included
};

struct Evidence {
  EvidenceKind kind = EvidenceKind::kPoints;
  double value = 0.0;
  std::optional<double> bar;
};

// What a rise that is not decided yet looks like.
enum class RiseForm {
  kStraight,
  kSlowing,  // ever slower
  kEnded,    // it rises no more, or hardly
  kUneven,   // one jump has most of it
};

// How likely growth that may end or not is to be a leak.
struct LeakLikelihood {
  double chance = 0.5;
  RiseForm form = RiseForm::kStraight;
  Moment since;  // when that rise began
};

struct Forecast {
  std::optional<double> limit_bytes;
  std::optional<double> in_s_low;  // earliest time until the limit is reached
  std::optional<double> in_s_high;
  std::optional<double> in_steps_low;
  std::optional<double> in_steps_high;
  std::optional<double> asymptote_bytes;  // where growth seems to end
};

// What a verdict that is undetermined still needs: so many steps, which take so many seconds. Where
// only one is known it is that.
struct Needs {
  std::optional<double> more_s;
  std::optional<double> more_steps;
  std::optional<double> more_points;
};

// Low-water and high-water mark of one stretch of the run.
struct FloorPoint {
  double x = 0.0;  // of the low-water mark, on the judged axis
  Moment at;       // where the stretch begins
  double floor_bytes = 0.0;
  double ceiling_bytes = 0.0;
  double mean_bytes = 0.0;
};

// What there is to say about one series.
struct SeriesVerdict {
  Verdict verdict = Verdict::kStable;
  double confidence = 0.0;    // chance that the verdict is right, as measured on generated curves
  bool undetermined = false;  // exit code 4: growing, or too few points to exclude anything
  std::optional<LeakLikelihood> likelihood;  // of kGrowing
  Axis axis = Axis::kTime;
  Moment begin;  // of what was judged
  Moment end;
  // Options that count what is not known here, steps or time; the defaults stood in for them.
  bool warmup_ignored = false;
  bool min_leak_ignored = false;

  double first_floor_bytes = 0.0;
  double last_floor_bytes = 0.0;
  double min_bytes = 0.0;
  double max_bytes = 0.0;
  double mean_bytes = 0.0;
  std::uint64_t samples = 0;

  std::vector<Pattern> patterns;  // in the order of time
  std::vector<Evidence> evidence;
  Forecast forecast;
  // A leak of this size that lasted for this stretch would have been seen; nullopt: too few points.
  std::optional<double> smallest_detectable_per_s;
  std::optional<double> smallest_detectable_per_step;
  Moment tested_from;
  Moment tested_to;
  std::optional<Needs> needs;
  std::optional<Moment> allowance_end;
  std::vector<FloorPoint> floor;  // for charts

  const Pattern* find(PatternKind kind) const;
  // Of the first kind that there is one of.
  const Pattern* find(std::initializer_list<PatternKind> kinds) const;
};

// "leak", "warmup", ...: they are in JSON and never change.
std::string_view verdict_name(Verdict verdict);
std::string_view pattern_name(PatternKind kind);
std::string_view shape_name(LeakShape shape);
std::string_view rise_form_name(RiseForm form);
std::string_view evidence_name(EvidenceKind kind);
// "about 40 more steps (12 s)", rounded; "" when nothing is known.
std::string needs_text(const Needs& needs);
// What to do instead of waiting when that takes long: "if you know ... --warmup 2min"; else "".
std::string needs_hint(const Needs& needs);

}  // namespace tidemark::tracker
