// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/replay_curves.h"

#include <array>
#include <cmath>

#include "trainer_harness/plan.h"

namespace tidemark::harness {
namespace {

// One value for every ten steps from step 10 on; constant before and after.
using Log = std::array<double, 10>;
constexpr Log kJob1 = {5376, 6984, 8675, 10333, 12066, 13745, 15547, 17406, 17844, 17882};
constexpr Log kJob2 = {6136, 7763, 9451, 11100, 12786, 14494, 16296, 18155, 18576, 18614};
constexpr std::uint64_t kLogStride = 10;

double interpolate(const Log& log, std::uint64_t step) {
  const double at = static_cast<double>(step) / kLogStride - 1.0;
  if (at <= 0) {
    return log.front();
  }
  const auto before = static_cast<std::size_t>(at);
  if (before + 1 >= log.size()) {
    return log.back();
  }
  return std::lerp(log[before], log[before + 1], at - static_cast<double>(before));
}

// Validation: the last steps of every period.
constexpr std::uint64_t kValidationPeriod = 40;
constexpr std::uint64_t kValidationSteps = 6;
constexpr double kCollectedMb = 4800;  // right after the collector ran
constexpr double kTrainingMb = 6200;   // before the next validation
constexpr double kValidationMb = 10400;

bool validates(std::uint64_t step) {
  return step % kValidationPeriod >= kValidationPeriod - kValidationSteps;
}

double valspike(std::uint64_t step) {
  if (validates(step)) {
    return kValidationMb;
  }
  const double share = static_cast<double>(step % kValidationPeriod) /
                       static_cast<double>(kValidationPeriod - kValidationSteps);
  return std::lerp(kCollectedMb, kTrainingMb, share);
}

constexpr std::uint64_t kSlowleakSteps = 240;
constexpr double kSlowleakFirstMb = 6000;
constexpr double kSlowleakMbPerStep = 1000.0 / kSlowleakSteps;
constexpr double kSlowleakSpikeMb = 4000;

double slowleak(std::uint64_t step) {
  return kSlowleakFirstMb + kSlowleakMbPerStep * static_cast<double>(step) +
         (validates(step) ? kSlowleakSpikeMb : 0);
}

constexpr std::uint64_t kCatastrophicSteps = 108;
constexpr double kCatastrophicFirstMb = 1254;
constexpr double kCatastrophicMbPerStep = (6625 - kCatastrophicFirstMb) / kCatastrophicSteps;
constexpr std::uint64_t kJumpStride = 4;

// In [-1, 1), one for each seed and index.
double jitter(std::uint64_t seed, std::uint64_t index) {
  return static_cast<double>(random_bits(seed, index) >> 11U) * 0x1p-52 - 1.0;
}

// Jump k (1, 2, ...) comes at step 4k or next to it. If a jump is too large, the next one is
// smaller by as much, so that the curve stays within one jump of its line.
double catastrophic(std::uint64_t step, std::uint64_t seed) {
  double sum = kCatastrophicFirstMb;
  for (std::uint64_t k = 1; kJumpStride * k <= step + 1; ++k) {
    const double late = std::round(jitter(seed, 2 * k));
    if (static_cast<double>(kJumpStride * k) + late > static_cast<double>(step)) {
      continue;
    }
    const double odd = 0.25 * jitter(seed, k / 2 * 2 + 1) * (k % 2 == 0 ? 1 : -1);
    sum += kJumpStride * kCatastrophicMbPerStep * (1 + odd);
  }
  return sum;
}

}  // namespace

double replayed_mb(Replay replay, std::uint64_t step, std::uint64_t seed) {
  switch (replay) {
    case Replay::kJob1:
      return interpolate(kJob1, step);
    case Replay::kJob2:
      return interpolate(kJob2, step);
    case Replay::kValspike:
      return valspike(step);
    case Replay::kSlowleak:
      return slowleak(step);
    case Replay::kCatastrophic:
      break;
  }
  return catastrophic(step, seed);
}

ReplayFacts facts_of(Replay replay) {
  ReplayFacts facts;
  switch (replay) {
    case Replay::kJob1:
    case Replay::kJob2:
      facts.steps = replay == Replay::kJob1 ? 240 : 180;
      facts.warmup_from_step = kLogStride;
      facts.plateau_step = 90;  // what follows is less than 0.3 %
      return facts;
    case Replay::kValspike:
      facts.steps = 240;
      facts.spike_period_steps = kValidationPeriod;
      facts.spike_steps = kValidationSteps;
      facts.spike_mb = kValidationMb - kCollectedMb;
      return facts;
    case Replay::kSlowleak:
      facts.steps = kSlowleakSteps;
      facts.spike_period_steps = kValidationPeriod;
      facts.spike_steps = kValidationSteps;
      facts.spike_mb = kSlowleakSpikeMb;
      facts.leak_mb_per_step = kSlowleakMbPerStep;
      return facts;
    case Replay::kCatastrophic:
      break;
  }
  facts.steps = kCatastrophicSteps;
  facts.leak_mb_per_step = kCatastrophicMbPerStep;
  facts.leaks_in_jumps = true;
  return facts;
}

}  // namespace tidemark::harness
