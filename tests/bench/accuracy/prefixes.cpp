// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/prefixes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tracker/curve/judge.h"

namespace tidemark::bench {
namespace {

constexpr std::size_t kCuts = 40;
constexpr std::uint64_t kStreams = std::uint64_t{1} << 40U;  // apart from the other curves
// The automatic allowance where no epoch is marked, and how long a new rise must last.
constexpr double kAutoSeconds = 1800.0;
constexpr double kAutoSteps = 500.0;
constexpr double kNewRiseSeconds = 600.0;

// One run: idle for a while, then at work. Times are in seconds since its birth.
struct Run {
  double idle_s = 0.0;
  double length_s = 0.0;
  double step_s = 0.0;       // 0: no steps are known
  double allowance_s = 0.0;  // for growth after the idle time
};

Run draw_run(SettlingKind kind, Random& random) {
  Run run;
  if (random.chance(0.5)) {
    run.step_s = random.log_between(0.2, 20.0);
  }
  if (kind == SettlingKind::kIdleThenFill) {
    run.idle_s = random.log_between(60.0, 3.0 * 3600.0);
  }
  // Without steps idle time is like any other that stands still, and what rises after it for long
  // enough is a leak by definition; so a fill is shorter.
  const bool is_new_rise = run.step_s == 0.0 && run.idle_s > 0.0;
  run.allowance_s =
      is_new_rise ? 0.9 * kNewRiseSeconds : std::max(kAutoSeconds, kAutoSteps * run.step_s);
  run.length_s = run.idle_s + run.allowance_s * random.log_between(0.7, 8.0);
  return run;
}

void add_growth(SettlingKind kind, const Run& run, Recipe& recipe, Random& random) {
  const double visible = std::max(recipe.baseline_bytes * random.log_between(0.05, 3.0),
                                  10.0 * recipe.noise.sigma_bytes);
  // The growth is over within the allowance, as growth is that deserves the name of warm-up.
  const double until = run.idle_s + run.allowance_s * random.between(0.2, 0.95);
  switch (kind) {
    case SettlingKind::kIdleThenFill:
      recipe.ramps.push_back(
          {run.idle_s, until, visible, random.chance(0.4) ? random.between(4.0, 8.0) : 0.0});
      break;
    case SettlingKind::kStaircaseWarmup: {
      const std::uint64_t stairs = random.count(3, 10);
      for (std::uint64_t i = 0; i < stairs; ++i) {
        const double place =
            (static_cast<double>(i) + random.uniform()) / static_cast<double>(stairs);
        recipe.jumps.push_back({until * place, visible * random.between(0.8, 1.2)});
      }
      break;
    }
    case SettlingKind::kLateJump:
      recipe.jumps.push_back({run.length_s * random.between(0.1, 0.98), visible});
      break;
  }
}

std::vector<double> places_of(const Run& run, Random& random) {
  const auto n = static_cast<std::size_t>(std::lround(random.log_between(60.0, 2000.0)));
  std::vector<double> t_s(n);
  const double interval = run.length_s / static_cast<double>(n - 1);
  for (std::size_t i = 0; i < n; ++i) {
    t_s[i] = interval * (static_cast<double>(i) + (i > 0 ? random.between(-0.3, 0.3) : 0.0));
  }
  return t_s;
}

struct Tally {
  std::uint64_t curves = 0;
  std::uint64_t prefixes = 0;
  std::uint64_t leaks = 0;
  std::uint64_t growing = 0;
  std::uint64_t settled = 0;  // at full length neither leak nor growing
  std::vector<std::string> failures;
};

void judge_one(const Curve& curve, std::uint64_t index, Tally& tally) {
  ++tally.curves;
  for (std::size_t cut = 1; cut <= kCuts; ++cut) {
    const std::size_t count = std::max<std::size_t>(curve.points.size() * cut / kCuts, 1);
    const tracker::SeriesVerdict reading = tracker::judge(series_of(curve, count), {});
    ++tally.prefixes;
    tally.growing += reading.verdict == tracker::Verdict::kGrowing ? 1U : 0U;
    if (reading.verdict == tracker::Verdict::kLeak) {
      ++tally.leaks;
      tally.failures.push_back(fmt::format("{}@{}", index, count));
    } else if (cut == kCuts && reading.verdict != tracker::Verdict::kGrowing) {
      ++tally.settled;
    }
  }
}

}  // namespace

std::string_view settling_name(SettlingKind kind) {
  constexpr std::array<std::string_view, kSettlingKinds> kNames = {"idle_then_fill",
                                                                   "staircase_warmup", "late_jump"};
  return kNames[static_cast<std::size_t>(kind)];
}

Curve generate_settling(std::uint64_t seed, std::uint64_t index) {
  Random random(seed, kStreams + index);
  const SettlingKind kind = settling_at(index);
  const Run run = draw_run(kind, random);
  const std::vector<double> t_s = places_of(run, random);
  Curve curve;
  curve.recipe.baseline_bytes = random.log_between(0.2e9, 60e9);
  curve.recipe.noise.sigma_bytes = curve.recipe.baseline_bytes * random.log_between(0.0005, 0.01);
  curve.recipe.noise.correlation = random.chance(0.5) ? random.between(0.0, 0.9) : 0.0;
  add_growth(kind, run, curve.recipe, random);
  for (const Ramp& ramp : curve.recipe.ramps) {
    curve.truth.warmup_end = std::max(curve.truth.warmup_end, ramp.to);
  }
  for (const Jump& jump : curve.recipe.jumps) {
    curve.truth.warmup_end = std::max(curve.truth.warmup_end, jump.at);
  }
  const std::vector<double> noise = disturbance(curve.recipe, t_s, random);
  for (std::size_t i = 0; i < t_s.size(); ++i) {
    Point point;
    point.t_s = t_s[i];
    if (run.step_s > 0.0 && t_s[i] >= run.idle_s) {
      point.step = std::floor((t_s[i] - run.idle_s) / run.step_s);
    }
    point.footprint_bytes = std::max(trend_bytes(curve.recipe, t_s[i]) + noise[i], 0.0);
    curve.points.push_back(point);
  }
  return curve;
}

void judge_prefixes(std::uint64_t seed, std::uint64_t count, Bars& bars) {
  std::array<Tally, kSettlingKinds> tallies;
  for (std::uint64_t index = 0; index < count; ++index) {
    judge_one(generate_settling(seed, index), index, tallies[index % kSettlingKinds]);
  }
  fmt::print(
      "\n| runs that settle, `--warmup auto` | runs | prefixes | `leak` | `growing` | settled "
      "at the end |\n| --- | ---: | ---: | ---: | ---: | ---: |\n");
  std::uint64_t leaks = 0;
  std::uint64_t prefixes = 0;
  for (std::size_t i = 0; i < tallies.size(); ++i) {
    const Tally& tally = tallies[i];
    fmt::print("| {} | {} | {} | {} | {} | {} |\n", settling_name(static_cast<SettlingKind>(i)),
               tally.curves, tally.prefixes, tally.leaks, tally.growing, tally.settled);
    leaks += tally.leaks;
    prefixes += tally.prefixes;
    if (!tally.failures.empty()) {
      const std::size_t shown = std::min<std::size_t>(tally.failures.size(), 30);
      fmt::print(stderr, "{}, run@samples:", settling_name(static_cast<SettlingKind>(i)));
      for (std::size_t k = 0; k < shown; ++k) {
        fmt::print(stderr, " {}", tally.failures[k]);
      }
      fmt::print(stderr, "\n");
    }
  }
  bars.at_most("`leak` on a prefix of a run that settles", static_cast<double>(leaks), 0.0,
               fmt::format("of {} prefixes", prefixes));
}

}  // namespace tidemark::bench
