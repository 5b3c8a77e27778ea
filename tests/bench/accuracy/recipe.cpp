// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/recipe.h"

#include <algorithm>
#include <cmath>

namespace tidemark::bench {
namespace {

double ramp_bytes(const Ramp& ramp, double x) {
  if (x <= ramp.from) {
    return 0.0;
  }
  const double u = (x - ramp.from) / (ramp.to - ramp.from);
  return ramp.height_bytes *
         (ramp.speed > 0.0 ? 1.0 - std::exp(-ramp.speed * u) : std::min(u, 1.0));
}

void add_noise(const Noise& noise, Random& random, std::vector<double>& values) {
  const double fresh = std::sqrt(1.0 - noise.correlation * noise.correlation);
  double level = random.normal();
  for (double& value : values) {
    value += noise.sigma_bytes * level;
    level = noise.correlation * level + fresh * random.normal();
  }
}

// Each period has a height of its own, within 10 %.
template <typename Form>
void add_periods(const Wave& wave, std::span<const double> xs, Random& random,
                 std::vector<double>& values, Form form) {
  const double phase = random.uniform();
  double period_now = -1.0;
  double height = 0.0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const double place = (xs[i] - xs.front()) / wave.period + phase;
    if (std::floor(place) != period_now) {
      period_now = std::floor(place);
      height = wave.height_bytes * random.between(0.9, 1.1);
    }
    values[i] += height * form((place - period_now) * wave.period);
  }
}

void add_random_spikes(const Wave& wave, std::span<const double> xs, Random& random,
                       std::vector<double>& values) {
  const auto pause = [&] { return -wave.period * std::log(1.0 - random.uniform()); };
  double from = xs.front() + pause();
  double to = from + wave.width;
  double height = wave.height_bytes;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    while (xs[i] >= to) {
      // A width of rest, so that two spikes are never one long one.
      from = to + wave.width + pause();
      to = from + wave.width * random.between(0.5, 1.0);
      height = wave.height_bytes * random.between(0.7, 1.3);
    }
    values[i] += xs[i] >= from ? height : 0.0;
  }
}

void add_pool(const Wave& wave, std::span<const double> xs, Random& random,
              std::vector<double>& values) {
  bool there = true;
  double until = xs.front() + wave.period * random.between(0.5, 1.5);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    while (xs[i] >= until) {
      there = !there;
      until += wave.period * random.between(0.5, 1.5);
    }
    values[i] += there ? wave.height_bytes : 0.0;
  }
}

void add_wave(const Wave& wave, std::span<const double> xs, Random& random,
              std::vector<double>& values) {
  switch (wave.kind) {
    case WaveKind::kNone:
      break;
    case WaveKind::kSawtooth:
      add_periods(wave, xs, random, values, [&](double x) { return x / wave.period; });
      break;
    case WaveKind::kPeriodic:
      add_periods(wave, xs, random, values, [&](double x) { return x < wave.width ? 1.0 : 0.0; });
      break;
    case WaveKind::kRandom:
      add_random_spikes(wave, xs, random, values);
      break;
    case WaveKind::kWorkerRestart:
      add_periods(wave, xs, random, values, [&](double x) {
        return x < wave.width ? 0.0 : 1.0 - std::exp(-8.0 * (x - wave.width) / wave.period);
      });
      break;
    case WaveKind::kPoolComesAndGoes:
      add_pool(wave, xs, random, values);
      break;
  }
}

}  // namespace

double leaked_bytes(const Leak& leak, double x) {
  if (x <= leak.onset) {
    return 0.0;
  }
  const double since = x - leak.onset;
  switch (leak.form) {
    case LeakForm::kLine:
      break;
    case LeakForm::kStairs:
      return leak.rate * leak.stair_length * std::floor(since / leak.stair_length);
    case LeakForm::kAccelerating: {
      const double whole = leak.end - leak.onset;
      return leak.rate * since * (0.3 + 0.7 * since / whole);
    }
  }
  return leak.rate * since;
}

double trend_bytes(const Recipe& recipe, double x) {
  double bytes = recipe.baseline_bytes;
  for (const Ramp& ramp : recipe.ramps) {
    bytes += ramp_bytes(ramp, x);
  }
  for (const Jump& jump : recipe.jumps) {
    bytes += x >= jump.at ? jump.height_bytes : 0.0;
  }
  return recipe.leak ? bytes + leaked_bytes(*recipe.leak, x) : bytes;
}

std::vector<double> disturbance(const Recipe& recipe, std::span<const double> xs, Random& random) {
  std::vector<double> values(xs.size(), 0.0);
  if (!xs.empty()) {
    add_noise(recipe.noise, random, values);
    add_wave(recipe.wave, xs, random, values);
  }
  return values;
}

}  // namespace tidemark::bench
