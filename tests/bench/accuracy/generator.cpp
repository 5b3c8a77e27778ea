// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/generator.h"

#include <algorithm>
#include <cmath>

#include "tests/bench/accuracy/families.h"
#include "tests/bench/accuracy/sampling.h"

namespace tidemark::bench {
namespace {

constexpr std::array<std::string_view, kFamilyCount> kNames = {
    "stable",           "linear_warmup",    "saturating",      "staircase_ends",
    "staircase_leak",   "sawtooth_flat",    "sawtooth_rising", "spikes",
    "spikes_over_leak", "warmup_then_leak", "late_onset",      "worker_churn",
    "page_cache",       "autocorrelated",   "swap_out",        "accelerating_leak",
    "late_jump",        "long_warmup",      "release",         "slow_drift"};

constexpr double kAllowanceShare = 0.4;
constexpr double kMinLeakPerHour = 0.005;  // of the floor: the default of --min-leak
constexpr double kMinLeakPerStep = 0.005 / 1000.0;
constexpr double kMinRise = 0.01;  // of the floor, over the window
constexpr double kMostRise = 5.0;  // of the baseline: no machine gives a job more

double highest_trend(const Recipe& recipe, std::span<const double> xs) {
  double highest = 0.0;
  for (const double x : xs) {
    highest = std::max(highest, trend_bytes(recipe, x));
  }
  return highest;
}

// In bytes per axis unit, for a floor as high as `floor_bytes`.
double gate_rate(const Sampling& sampling, double floor_bytes, double window) {
  const double min_leak =
      sampling.has_time ? kMinLeakPerHour / 3600.0 * sampling.seconds_per_unit : kMinLeakPerStep;
  return floor_bytes * std::max(min_leak, kMinRise / window);
}

// Half to a hundred times the bound. Where that is too slow to matter, half of them start again
// from the gate: else there were few leaks to miss among quiet curves.
double draw_rate(const Recipe& recipe, double bound, double gate, Random& random) {
  double rate = bound * random.log_between(0.5, 100.0);
  if (rate < gate && random.chance(0.5)) {
    rate = gate * random.log_between(1.2, 20.0);
  }
  return std::min(rate,
                  kMostRise * recipe.baseline_bytes / (recipe.leak->end - recipe.leak->onset));
}

// What is judged begins after `earliest` and the last change of level, and holds 4 blocks.
double window_start(const Draft& draft, std::span<const double> xs, double earliest) {
  double from = std::max(earliest, draft.warmup_end);
  for (const Jump& jump : draft.recipe.jumps) {
    from = std::max(from, jump.at);
  }
  return std::max(earliest, std::min(from, xs.back() - 4.0 * block_length(xs, 0.0)));
}

// Rates that the recipe still lacks, and the truth that follows from them.
Truth settle_truth(Draft& draft, const Sampling& sampling, double allowance_end, Random& random) {
  const std::vector<double>& xs = sampling.xs();
  Recipe& recipe = draft.recipe;
  Truth truth;
  truth.leaks = recipe.leak.has_value();
  truth.onset = truth.leaks ? recipe.leak->onset : 0.0;
  truth.warmup_end = draft.warmup_end;
  truth.right = draft.right;
  const double window_from = window_start(draft, xs, std::max(truth.onset, allowance_end));
  const double window = xs.back() - window_from;
  truth.bound = detection_bound(recipe, xs, window_from, random);
  truth.gate = gate_rate(sampling, highest_trend(recipe, xs), window);
  if (recipe.wave.kind == WaveKind::kSawtooth || recipe.wave.kind == WaveKind::kPeriodic) {
    truth.period = recipe.wave.period;
  }
  if (draft.drift_of_gate > 0.0) {
    recipe.leak =
        Leak{LeakForm::kLine, xs.front(), xs.back(), draft.drift_of_gate * truth.gate, 0.0};
  }
  if (truth.leaks) {
    recipe.leak->rate = draw_rate(recipe, truth.bound.rate, truth.gate, random);
    truth.rate = recipe.leak->rate;
    // The floor is higher now, and the gate with it.
    truth.gate = gate_rate(sampling, highest_trend(recipe, xs), window);
    truth.due = truth.rate >= 5.0 * truth.bound.rate && truth.rate >= 1.1 * truth.gate;
    truth.weak = truth.rate >= 3.0 * truth.bound.rate && truth.rate >= 1.1 * truth.gate;
    if (truth.due) {
      truth.right = Verdicts::of(tracker::Verdict::kLeak);
    } else {
      truth.right.add(tracker::Verdict::kLeak);
      truth.right.add(tracker::Verdict::kStable);
      truth.right.add(tracker::Verdict::kWarmup);
    }
  }
  return truth;
}

// What samplers and real runs add: single dips of a child that was missed, and the teardown.
void add_mishaps(Curve& curve, Random& random) {
  const std::size_t n = curve.points.size();
  if (random.chance(0.1)) {
    const std::uint64_t dips = random.count(1, 3);
    for (std::uint64_t i = 0; i < dips; ++i) {
      const std::uint64_t at = random.count(2, n - 4);
      curve.points[at].footprint_bytes *= random.between(0.4, 0.95);
    }
  }
  if (n >= 60 && curve.recipe.wave.kind == WaveKind::kNone && curve.family != Family::kRelease &&
      random.chance(0.1)) {
    const auto share = random.between(0.01, 0.04);
    const auto last = static_cast<std::size_t>(share * static_cast<double>(n));
    const double left = random.between(0.05, 0.3);
    for (std::size_t i = n - std::max<std::size_t>(last, 1); i < n; ++i) {
      curve.points[i].footprint_bytes *= left;
    }
  }
}

void add_columns(const Draft& draft, Curve& curve, Random& random) {
  const double first = curve.x(0);
  const double length = curve.x(curve.points.size() - 1) - first;
  const double file = draft.recipe.baseline_bytes * random.between(0.02, 0.2);
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    Point& point = curve.points[i];
    const double x = curve.x(i);
    point.rss_file_bytes = file + draft.file_growth_bytes * (x - first) / length;
    if (draft.swapped_bytes > 0.0) {
      const double done = (x - draft.swap_from) / (draft.swap_to - draft.swap_from);
      point.swap_bytes =
          std::min(draft.swapped_bytes * std::clamp(done, 0.0, 1.0), point.footprint_bytes);
    }
    point.rss_bytes = point.footprint_bytes - point.swap_bytes + point.rss_file_bytes;
  }
}

}  // namespace

std::string_view family_name(Family family) { return kNames[static_cast<std::size_t>(family)]; }

std::optional<Family> family_from_name(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) {
    return std::nullopt;
  }
  return static_cast<Family>(found - kNames.begin());
}

Curve generate(std::uint64_t seed, std::uint64_t index) {
  Random random(seed, index);
  const auto n = static_cast<std::size_t>(std::lround(random.log_between(30.0, 3000.0)));
  const Sampling sampling = draw_sampling(n, random);
  const std::vector<double>& xs = sampling.xs();
  Curve curve;
  curve.family = family_at(index);
  curve.axis = sampling.axis;
  curve.allowance_end = xs.front() + kAllowanceShare * (xs.back() - xs.front());
  Draft draft = draft_family(curve.family, xs, random);
  curve.truth = settle_truth(draft, sampling, curve.allowance_end, random);
  curve.recipe = draft.recipe;
  const std::vector<double> noise = disturbance(curve.recipe, xs, random);
  curve.points.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    curve.points[i].t_s = sampling.has_time ? sampling.t_s[i] : tracker::kUnknown;
    curve.points[i].step = sampling.step.empty() ? tracker::kUnknown : sampling.step[i];
    curve.points[i].footprint_bytes = std::max(trend_bytes(curve.recipe, xs[i]) + noise[i], 0.0);
  }
  add_mishaps(curve, random);
  add_columns(draft, curve, random);
  return curve;
}

tracker::Series series_of(const Curve& curve, std::size_t count) {
  tracker::Series series;
  for (std::size_t i = 0; i < count; ++i) {
    const Point& point = curve.points[i];
    series.add(point.t_s, point.step, point.footprint_bytes);
  }
  return series;
}

tracker::Options options_of(const Curve& curve) {
  tracker::Options options;
  const double length = curve.allowance_end - curve.x(0);
  (curve.axis == tracker::Axis::kSteps ? options.warmup.steps : options.warmup.seconds) = length;
  return options;
}

}  // namespace tidemark::bench
