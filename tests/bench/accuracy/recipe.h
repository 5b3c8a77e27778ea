// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tests/bench/accuracy/random.h"

namespace tidemark::bench {

// What a generated curve is made of. Places and lengths are on the axis that growth is judged on.

// Growth that ends.
struct Ramp {
  double from = 0.0;
  double to = 0.0;
  double height_bytes = 0.0;
  // 0: a straight line. Else height * (1 - exp(-speed * u)) with u = 1 at `to`, and on from there.
  double speed = 0.0;
};

// One jump that stays; negative: memory that is given back.
struct Jump {
  double at = 0.0;
  double height_bytes = 0.0;
};

enum class LeakForm { kLine, kStairs, kAccelerating };

struct Leak {
  LeakForm form = LeakForm::kLine;
  double onset = 0.0;
  double end = 0.0;           // of the data
  double rate = 0.0;          // bytes per axis unit, the mean from onset to end
  double stair_length = 0.0;  // of kStairs
};

enum class WaveKind {
  kNone,
  kSawtooth,          // fills over a period, then is collected
  kPeriodic,          // a spike of `width` in every period
  kRandom,            // spikes that come when they like, one per period in the mean
  kWorkerRestart,     // in every period the workers end and come back, filling up again
  kPoolComesAndGoes,  // a pool of workers is there for about a period, then is not
};

struct Wave {
  WaveKind kind = WaveKind::kNone;
  double period = 0.0;
  double width = 0.0;
  double height_bytes = 0.0;
};

struct Noise {
  double sigma_bytes = 0.0;  // marginal
  double correlation = 0.0;  // of neighbouring samples; 0: white
};

struct Recipe {
  double baseline_bytes = 0.0;
  std::vector<Ramp> ramps;
  std::vector<Jump> jumps;
  std::optional<Leak> leak;
  Wave wave;
  Noise noise;
};

// The floor without noise and waves.
double trend_bytes(const Recipe& recipe, double x);
double leaked_bytes(const Leak& leak, double x);

// Noise and waves alone, at each x; another draw of both at each call.
std::vector<double> disturbance(const Recipe& recipe, std::span<const double> xs, Random& random);

}  // namespace tidemark::bench
