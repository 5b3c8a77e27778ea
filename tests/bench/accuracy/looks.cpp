// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/looks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "tracker/curve/judge.h"

namespace tidemark::bench {
namespace {

using tracker::Verdict;

constexpr std::uint64_t kStreams = std::uint64_t{1} << 41U;  // apart from the other curves
constexpr std::array<double, 3> kCutsS = {120.0, 300.0, 600.0};
constexpr double kLongestS = 600.0;
constexpr double kVisibleSigmas = 8.0;
constexpr double kVisibleShare = 0.02;  // of the floor
constexpr double kVisibleS = 30.0;      // what is younger nobody can judge
constexpr double kSlowed = 0.5;         // of its first rate

bool kind_leaks(LookKind kind) { return kind < LookKind::kLoad; }

// When the job was started, seen from the first sample: most looks come from whoever has just
// started it, the rest somewhat later.
double draw_age(LookKind kind, Random& random) {
  if (kind == LookKind::kLeakOfOldJob || kind == LookKind::kOldJobBusy) {
    return random.log_between(3600.0, 24.0 * 3600.0);
  }
  return random.chance(0.6) ? random.between(0.0, 3.0) : random.between(3.0, 300.0);
}

Ramp loading(Random& random, double from_s, double height) {
  const double length = random.log_between(5.0, 90.0);
  return {from_s, from_s + length, height, random.chance(0.3) ? random.between(2.0, 5.0) : 0.0};
}

double leak_rate(const Recipe& recipe, Random& random) {
  return recipe.baseline_bytes * random.log_between(0.01, 0.5) / 60.0;
}

void add_leak(Look& look, double onset_s, LeakForm form, double stair_s, Random& random) {
  Leak leak;
  leak.form = form;
  leak.onset = onset_s;
  leak.end = kLongestS;
  leak.rate = leak_rate(look.curve.recipe, random);
  leak.stair_length = stair_s;
  look.curve.recipe.leak = leak;
  look.onset_s = onset_s;
}

// Places are seconds since the first sample; the job is `age` older.
void add_growth(LookKind kind, double age, Look& look, Random& random) {
  Recipe& recipe = look.curve.recipe;
  const double height = recipe.baseline_bytes * random.log_between(0.05, 3.0);
  const double born = -age;
  switch (kind) {
    case LookKind::kLeakFromStart:
      add_leak(look, born, LeakForm::kLine, 0.0, random);
      break;
    case LookKind::kLeakAfterLoad: {
      const Ramp load = loading(random, born, height);
      recipe.ramps.push_back(load);
      add_leak(look, load.to, LeakForm::kLine, 0.0, random);
      break;
    }
    case LookKind::kLeakInStairs:
      add_leak(look, born, LeakForm::kStairs, random.between(5.0, 40.0), random);
      break;
    case LookKind::kLeakOfOldJob:
      add_leak(look, -std::min(age, 3600.0), LeakForm::kLine, 0.0, random);
      recipe.leak->rate *= 0.3;
      break;
    case LookKind::kLeakBeginsLate:
      add_leak(look, random.between(20.0, 200.0), LeakForm::kLine, 0.0, random);
      break;
    case LookKind::kLoad:
      recipe.ramps.push_back(loading(random, born + random.between(0.0, 20.0), height));
      break;
    case LookKind::kSaturating: {
      const double tau = random.log_between(10.0, 300.0);
      recipe.ramps.push_back({born, born + tau, height, 1.0});
      break;
    }
    case LookKind::kStaircaseEnds: {
      const std::uint64_t stairs = random.count(3, 10);
      const double until = random.log_between(30.0, 600.0);
      for (std::uint64_t i = 0; i < stairs; ++i) {
        const double place =
            (static_cast<double>(i) + random.uniform()) / static_cast<double>(stairs);
        recipe.jumps.push_back({born + until * place,
                                height / static_cast<double>(stairs) * random.between(0.8, 1.2)});
      }
      break;
    }
    case LookKind::kFirstEpoch: {
      const double epoch = random.log_between(30.0, 1500.0);
      recipe.ramps.push_back({born, born + epoch, height, 0.0});
      if (random.chance(0.5)) {
        look.options.epoch_seconds = epoch;
      }
      break;
    }
    case LookKind::kOldJobBusy: {
      const double from = random.between(-60.0, 200.0);
      const double length = random.log_between(10.0, 120.0);
      recipe.ramps.push_back({from, from + length, 0.3 * height, 0.0});
      recipe.ramps.push_back({from + length + 5.0, from + length + 6.0, -0.3 * height, 0.0});
      break;
    }
  }
}

// Of the trend, around a place.
double rate_at(const Recipe& recipe, double at_s) {
  constexpr double kAround = 2.0;
  return (trend_bytes(recipe, at_s) - trend_bytes(recipe, at_s - kAround)) / kAround;
}

struct Tally {
  std::uint64_t looks = 0;
  std::uint64_t growing = 0;
  std::uint64_t knowable = 0;
  std::uint64_t right = 0;  // of those: the likelier side is the truth
};

struct Claim {
  double chance = 0.0;
  bool leaks = false;
};

std::size_t samples_until(const Curve& curve, double at_s) {
  return static_cast<std::size_t>(std::count_if(curve.points.begin(), curve.points.end(),
                                                [&](const Point& p) { return p.t_s <= at_s; }));
}

// What somebody who has to bet would say.
bool says_leak(const tracker::SeriesVerdict& verdict) {
  return verdict.verdict == Verdict::kLeak ||
         (verdict.likelihood && verdict.likelihood->chance > 0.5);
}

double print_calibration(const std::vector<Claim>& claims) {
  constexpr std::array<double, 8> kEdges = {0.0, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 1.01};
  fmt::print(
      "\n| likelihood of a leak | looks | mean | share that leaks |\n| --- | ---: | ---: | ---: "
      "|\n");
  double distance = 0.0;
  for (std::size_t i = 0; i + 1 < kEdges.size(); ++i) {
    double sum = 0.0;
    double leaks = 0.0;
    double count = 0.0;
    for (const Claim& claim : claims) {
      if (claim.chance >= kEdges[i] && claim.chance < kEdges[i + 1]) {
        sum += claim.chance;
        leaks += claim.leaks ? 1.0 : 0.0;
        count += 1.0;
      }
    }
    if (count > 0.0) {
      fmt::print("| {:.2f} to {:.2f} | {:.0f} | {:.3f} | {:.3f} |\n", kEdges[i],
                 std::min(kEdges[i + 1], 1.0), count, sum / count, leaks / count);
      distance += std::abs(sum - leaks);
    }
  }
  return claims.empty() ? 0.0 : 100.0 * distance / static_cast<double>(claims.size());
}

}  // namespace

std::string_view look_name(LookKind kind) {
  constexpr std::array<std::string_view, kLookKinds> kNames = {
      "leak_from_start", "leak_after_load",  "leak_in_stairs",
      "leak_of_old_job", "leak_begins_late", "load",
      "saturating",      "staircase_ends",   "first_epoch",
      "old_job_busy"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool Look::is_knowable(double at_s) const {
  const Recipe& recipe = curve.recipe;
  const double floor = trend_bytes(recipe, 0.0);
  if (leaks) {
    const double from = std::max(onset_s, 0.0);
    const double grown = leaked_bytes(*recipe.leak, at_s) - leaked_bytes(*recipe.leak, from);
    return at_s - from >= kVisibleS &&
           grown >= std::max(kVisibleSigmas * sigma_bytes, kVisibleShare * floor);
  }
  const bool jumps_on = std::any_of(recipe.jumps.begin(), recipe.jumps.end(),
                                    [&](const Jump& jump) { return jump.at > at_s - kVisibleS; });
  if (jumps_on) {
    return false;
  }
  double fastest = 0.0;
  for (double t = 1.0; t <= at_s; t += 1.0) {
    fastest = std::max(fastest, rate_at(recipe, t));
  }
  return fastest * kVisibleS < kVisibleSigmas * sigma_bytes ||
         rate_at(recipe, at_s) < kSlowed * fastest;
}

Look generate_look(std::uint64_t seed, std::uint64_t index) {
  Random random(seed, kStreams + index);
  const LookKind kind = look_at(index);
  Look look;
  look.leaks = kind_leaks(kind);
  Recipe& recipe = look.curve.recipe;
  recipe.baseline_bytes = random.log_between(0.2e9, 60e9);
  recipe.noise.sigma_bytes = recipe.baseline_bytes * random.log_between(0.0002, 0.01);
  recipe.noise.correlation = random.chance(0.5) ? random.between(0.0, 0.9) : 0.0;
  look.sigma_bytes = recipe.noise.sigma_bytes;
  const double age = draw_age(kind, random);
  look.options.age_at_start_s = age;
  add_growth(kind, age, look, random);
  const double step_s = random.chance(0.5) ? random.log_between(0.05, 5.0) : 0.0;
  if (step_s > 0.0) {
    look.options.steps_at_start = age / step_s;
    if (look.options.epoch_seconds) {
      look.options.epoch_steps = *look.options.epoch_seconds / step_s;
    }
  }
  std::vector<double> t_s;
  for (double t = 0.0; t <= kLongestS; t += 1.0) {
    t_s.push_back(t + (t > 0.0 ? random.between(-0.2, 0.2) : 0.0));
  }
  const std::vector<double> noise = disturbance(recipe, t_s, random);
  for (std::size_t i = 0; i < t_s.size(); ++i) {
    Point point;
    point.t_s = t_s[i];
    if (step_s > 0.0) {
      point.step = std::floor((t_s[i] + age) / step_s);
    }
    point.footprint_bytes = std::max(trend_bytes(recipe, t_s[i]) + noise[i], 0.0);
    look.curve.points.push_back(point);
  }
  return look;
}

void judge_looks(std::uint64_t seed, std::uint64_t count, Bars& bars) {
  std::array<std::array<Tally, kLookKinds>, kCutsS.size()> tallies;
  std::vector<Claim> claims;
  double highest = 0.0;  // chance of a leak for what settles
  for (std::uint64_t index = 0; index < count; ++index) {
    const Look look = generate_look(seed, index);
    for (std::size_t cut = 0; cut < kCutsS.size(); ++cut) {
      const tracker::SeriesVerdict verdict = tracker::judge(
          series_of(look.curve, samples_until(look.curve, kCutsS[cut])), look.options);
      Tally& tally = tallies[cut][index % kLookKinds];
      ++tally.looks;
      if (verdict.likelihood) {
        ++tally.growing;
        claims.push_back({verdict.likelihood->chance, look.leaks});
        highest = look.leaks ? highest : std::max(highest, verdict.likelihood->chance);
      }
      if (look.is_knowable(kCutsS[cut])) {
        ++tally.knowable;
        tally.right += says_leak(verdict) == look.leaks ? 1U : 0U;
      }
    }
  }
  fmt::print(
      "\n| short look | looks | growing at 2 min | knowable | right, % | growing at 5 min | "
      "knowable | right, % | growing at 10 min | knowable | right, % |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  const auto share = [](const Tally& tally) {
    return tally.knowable == 0
               ? 0.0
               : 100.0 * static_cast<double>(tally.right) / static_cast<double>(tally.knowable);
  };
  std::array<Tally, kCutsS.size()> all;
  for (std::size_t kind = 0; kind < kLookKinds; ++kind) {
    fmt::print("| {} | {} |", look_name(static_cast<LookKind>(kind)), tallies[0][kind].looks);
    for (std::size_t cut = 0; cut < kCutsS.size(); ++cut) {
      const Tally& tally = tallies[cut][kind];
      fmt::print(" {} | {} | {:.1f} |", tally.growing, tally.knowable, share(tally));
      all[cut].knowable += tally.knowable;
      all[cut].right += tally.right;
    }
    fmt::print("\n");
  }
  const double distance = print_calibration(claims);
  for (std::size_t cut = 0; cut < kCutsS.size(); ++cut) {
    bars.at_least(
        fmt::format("likelier of leak and warm-up right after {:.0f} min, %", kCutsS[cut] / 60.0),
        share(all[cut]), 85.0,
        fmt::format("{} of {} knowable looks", all[cut].right, all[cut].knowable));
  }
  bars.at_most("likelihood of a leak for what settles later, highest", highest, 0.95,
               fmt::format("of {} looks", count));
  bars.at_most("likelihood against share that leaks, mean distance in %", distance, 10.0,
               fmt::format("{} looks that were `growing`", claims.size()));
}

}  // namespace tidemark::bench
