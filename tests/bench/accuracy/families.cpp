// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/families.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tidemark::bench {
namespace {

using tracker::Verdict;

// What the families share while they are drawn.
struct Bench {
  std::span<const double> xs;
  Random& random;
  Draft draft;

  double at(double share) const { return xs.front() + share * length(); }
  double length() const { return xs.back() - xs.front(); }
  double interval() const { return length() / static_cast<double>(xs.size() - 1); }
  Recipe& recipe() { return draft.recipe; }
  // Something that stands out: of the baseline, and never hidden in the noise.
  double visible_bytes(double low, double high) {
    return std::max(recipe().baseline_bytes * random.log_between(low, high),
                    10.0 * recipe().noise.sigma_bytes);
  }
};

void add_warmup(Bench& bench) {
  Random& random = bench.random;
  Ramp ramp;
  ramp.from = bench.at(random.chance(0.5) ? 0.0 : random.between(0.0, 0.1));
  ramp.to = bench.at(random.between(0.15, 0.35));
  ramp.height_bytes = bench.visible_bytes(0.1, 3.0);
  bench.draft.warmup_end = ramp.to;
  bench.recipe().ramps.push_back(ramp);
  bench.draft.right = Verdicts::of(Verdict::kWarmup);
}

// What nearly every training job does first; the rest of the families start flat as often as not.
void maybe_warmup(Bench& bench) {
  if (bench.random.chance(0.5)) {
    add_warmup(bench);
    if (bench.random.chance(0.4)) {
      bench.recipe().ramps.back().speed = bench.random.between(6.0, 10.0);
    }
  }
}

void add_stairs(Bench& bench, double from, double to) {
  const std::uint64_t count = bench.random.count(3, 8);
  const double height = bench.visible_bytes(0.05, 0.5);
  for (std::uint64_t i = 0; i < count; ++i) {
    const double place =
        (static_cast<double>(i) + bench.random.uniform()) / static_cast<double>(count);
    bench.recipe().jumps.push_back(
        {bench.at(from + (to - from) * place), height * bench.random.between(0.7, 1.3)});
  }
  bench.draft.warmup_end = bench.at(to);
  bench.draft.right = Verdicts::of(Verdict::kWarmup);
}

void add_leak(Bench& bench, LeakForm form, double earliest, double latest) {
  Leak leak;
  leak.form = form;
  leak.onset = bench.at(bench.random.between(earliest, latest));
  leak.end = bench.xs.back();
  if (form == LeakForm::kStairs) {
    leak.stair_length =
        std::max((leak.end - leak.onset) / bench.random.between(9.0, 40.0), 2.0 * bench.interval());
  }
  bench.recipe().leak = leak;
}

void add_wave(Bench& bench, WaveKind kind) {
  Wave& wave = bench.recipe().wave;
  const double interval = bench.interval();
  wave.kind = kind;
  wave.height_bytes = bench.visible_bytes(0.1, 1.5);
  if (kind == WaveKind::kPoolComesAndGoes) {
    wave.period = bench.length() * bench.random.between(0.1, 0.4);
  } else {
    wave.period = std::max(5.0 * interval, std::min(interval * bench.random.log_between(6.0, 150.0),
                                                    bench.length() / 10.0));
  }
  // Not more than a quarter of the time is spent up there.
  wave.width = std::min(interval * bench.random.log_between(1.0, 20.0), wave.period / 4.0);
  bench.draft.right = Verdicts::of(Verdict::kSpikes);
}

void add_spikes(Bench& bench) {
  add_wave(bench, bench.random.chance(0.5) ? WaveKind::kPeriodic : WaveKind::kRandom);
}

void add_churn(Bench& bench) {
  add_wave(bench,
           bench.random.chance(0.6) ? WaveKind::kWorkerRestart : WaveKind::kPoolComesAndGoes);
  bench.draft.right = Verdicts::of(Verdict::kStable, Verdict::kWarmup, Verdict::kSpikes);
}

void add_late_jumps(Bench& bench) {
  const std::uint64_t count = bench.random.chance(0.75) ? 1 : 2;
  const double height = bench.visible_bytes(0.02, 1.0);
  for (std::uint64_t i = 0; i < count; ++i) {
    bench.recipe().jumps.push_back(
        {bench.at(bench.random.between(0.42, 0.9)), height * bench.random.between(0.6, 1.4)});
  }
  bench.draft.right = Verdicts::of(Verdict::kStable, Verdict::kWarmup);
}

// The allowance was too short: the growth ends, but well after it.
void add_long_warmup(Bench& bench) {
  Ramp ramp;
  ramp.from = bench.at(bench.random.between(0.0, 0.2));
  ramp.to = bench.at(bench.random.between(0.45, 0.75));
  ramp.height_bytes = bench.visible_bytes(0.1, 3.0);
  bench.recipe().ramps.push_back(ramp);
  bench.draft.warmup_end = ramp.to;
  bench.draft.right = Verdicts::of(Verdict::kWarmup);
}

void add_release(Bench& bench) {
  const double height = bench.recipe().baseline_bytes * bench.random.between(0.05, 0.5);
  const double down = bench.random.between(0.1, 0.8);
  bench.recipe().jumps.push_back({bench.at(down), -height});
  if (bench.random.chance(0.5)) {  // and it comes back
    bench.recipe().jumps.push_back({bench.at(bench.random.between(down + 0.05, 0.92)), height});
  }
  bench.draft.right = Verdicts::of(Verdict::kStable, Verdict::kWarmup, Verdict::kSpikes);
}

void add_page_cache(Bench& bench) { bench.draft.file_growth_bytes = bench.visible_bytes(0.1, 2.0); }

// Swapped out all at once or little by little; every second one also leaks, which RSS hides.
void add_swap(Bench& bench) {
  const double from = bench.random.between(0.2, 0.7);
  bench.draft.swapped_bytes = bench.recipe().baseline_bytes * bench.random.between(0.1, 0.6);
  bench.draft.swap_from = bench.at(from);
  bench.draft.swap_to = bench.at(from + bench.random.between(0.01, 0.3));
  if (bench.random.chance(0.5)) {
    add_leak(bench, LeakForm::kLine, 0.0, 0.3);
  }
}

void add_noise(Bench& bench, Family family) {
  Noise& noise = bench.recipe().noise;
  noise.sigma_bytes = bench.recipe().baseline_bytes * bench.random.log_between(0.0005, 0.03);
  if (family == Family::kAutocorrelated) {
    noise.correlation = bench.random.between(0.6, 0.9);
  } else if (bench.random.chance(0.6)) {
    noise.correlation = bench.random.between(0.0, 0.9);
  }
}

void add_character(Bench& bench, Family family) {
  switch (family) {
    case Family::kStable:
      return;
    case Family::kLinearWarmup:
      return add_warmup(bench);
    case Family::kSaturating:
      add_warmup(bench);
      bench.recipe().ramps.back().speed = bench.random.between(5.0, 10.0);
      return;
    case Family::kStaircaseEnds:
      return add_stairs(bench, 0.0, 0.35);
    case Family::kLongWarmup:
      return add_long_warmup(bench);
    default:
      maybe_warmup(bench);
  }
  switch (family) {
    case Family::kStaircaseLeak:
      return add_leak(bench, LeakForm::kStairs, 0.0, 0.3);
    case Family::kSawtoothFlat:
      return add_wave(bench, WaveKind::kSawtooth);
    case Family::kSawtoothRising:
      add_wave(bench, WaveKind::kSawtooth);
      return add_leak(bench, LeakForm::kLine, 0.0, 0.3);
    case Family::kSpikes:
      return add_spikes(bench);
    case Family::kSpikesOverLeak:
      add_spikes(bench);
      return add_leak(bench, LeakForm::kLine, 0.0, 0.3);
    case Family::kWarmupThenLeak:
      if (bench.recipe().ramps.empty()) {
        add_warmup(bench);
      }
      return add_leak(bench, LeakForm::kLine, 0.0, 0.35);
    case Family::kLateOnset:
      return add_leak(bench, LeakForm::kLine, 0.42, 0.7);
    case Family::kWorkerChurn:
      return add_churn(bench);
    case Family::kPageCache:
      return add_page_cache(bench);
    case Family::kSwapOut:
      return add_swap(bench);
    case Family::kAcceleratingLeak:
      return add_leak(bench, LeakForm::kAccelerating, 0.0, 0.3);
    case Family::kLateJump:
      return add_late_jumps(bench);
    case Family::kRelease:
      return add_release(bench);
    case Family::kSlowDrift:
      bench.draft.drift_of_gate = bench.random.between(0.1, 0.5);
      return;
    default:
      return;
  }
}

}  // namespace

Draft draft_family(Family family, std::span<const double> xs, Random& random) {
  Bench bench{xs, random, {}};
  bench.recipe().baseline_bytes = random.log_between(0.2e9, 60e9);
  bench.draft.right = Verdicts::of(Verdict::kStable);
  add_noise(bench, family);
  add_character(bench, family);
  return std::move(bench.draft);
}

}  // namespace tidemark::bench
