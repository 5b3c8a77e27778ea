// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "trainer_harness/options.h"

namespace tidemark::harness {

inline constexpr std::uint64_t kMicroBatches = 2;  // per step, for gradient accumulation

// What a run does to memory at which step, in bytes: all the arithmetic of the scenarios. Steps
// count from 1; a period of 0 means never; a size of 0 that the scenario does not use it.
struct Plan {
  std::uint64_t steps = 0;
  double step_time_s = 0;
  std::uint64_t epoch_steps = 0;

  std::uint64_t base_bytes = 0;  // held from the start to the end

  std::uint64_t sample_bytes = 0;  // of one image in the cache that the first epoch fills
  std::uint64_t batch = 0;         // images in a micro-batch

  std::uint64_t eval_every = 0;
  std::uint64_t eval_batches = 0;  // each takes as long as a step
  std::uint64_t eval_bytes = 0;    // loaded for an evaluation, then freed

  struct Leak {
    Cause cause = Cause::kCollator;
    std::uint64_t after_step = 0;  // the last step that leaks nothing
    std::uint64_t bytes_per_step = 0;
  };
  std::optional<Leak> leak;

  std::uint64_t checkpoint_every = 0;
  std::uint64_t checkpoint_bytes = 0;  // of a copy that is never freed

  std::uint64_t cycle_bytes_per_step = 0;
  std::uint64_t collect_every = 0;

  std::uint64_t fragment_bytes_per_step = 0;  // in small blocks, until all are freed
  std::uint64_t fragment_until_step = 0;

  struct Pool {  // of compile workers
    std::uint64_t workers = 0;
    std::uint64_t shared_bytes = 0;   // of the sidecar, seen by all of its pool
    std::uint64_t private_bytes = 0;  // of each worker
    std::uint64_t quits_after_step = 0;
  };
  std::optional<Pool> pool;

  struct CopyOnWrite {
    std::uint64_t workers = 0;
    std::uint64_t heap_bytes = 0;
    std::uint64_t until_step = 0;  // by then every worker has copied all of it
  };
  std::optional<CopyOnWrite> copy_on_write;

  struct Replayed {
    Replay replay = Replay::kJob1;
    double scale = 0;
    std::uint64_t seed = 0;
  };
  std::optional<Replayed> replayed;

  std::uint64_t cleanup_every = 0;

  std::uint64_t epoch_samples() const { return epoch_steps * kMicroBatches * batch; }
  std::uint64_t cache_bytes() const { return sample_bytes * epoch_samples(); }
};
Plan plan_run(const TrainerOptions& options);

// How much of the pages of `copy_on_write` each worker has written when `step` is done, 0..1.
double copied_share(const Plan::CopyOnWrite& plan, std::uint64_t step);
std::uint64_t replayed_bytes(const Plan::Replayed& plan, std::uint64_t step);

// Equal arguments give equal bits, neighbouring ones give unrelated bits: the same on every
// machine and with every library, unlike the distributions of <random>.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t bits = seed * 0x9E3779B97F4A7C15U + index;
  for (const std::uint64_t factor : {0xD6E8FEB86659FD93U, 0xD6E8FEB86659FD93U}) {
    bits = (bits ^ (bits >> 32U)) * factor;
  }
  return bits ^ (bits >> 32U);
}

}  // namespace tidemark::harness
