// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/result.h"
#include "trainer_harness/options.h"

namespace tidemark::harness {

// Receives the progress of a run, and may end it. Called from the thread that called run_trainer().
class TrainerObserver {
 public:
  virtual ~TrainerObserver() = default;
  virtual void on_step(std::uint64_t step, double loss) = 0;
  // "eval" or "checkpoint" begins (true) or ends.
  virtual void on_phase(std::string_view /*name*/, bool /*begins*/) {}
  // Asked before each step: true ends the run after a checkpoint, as a success.
  virtual bool stop_requested() { return false; }
};

struct TrainerOutcome {
  std::uint64_t steps_done = 0;  // including those before the checkpoint that was resumed
  std::optional<double> last_loss;
  double seconds = 0.0;  // from the first step to the end of the last
  bool stopped = false;  // because the observer asked for it
};

// Trains to the last step or until the observer says stop. Ignores `options.wrapper`, which main()
// has handled. kUnsupported: there is no such device. The sample cache of `warmup` stays in the
// process, as the caches of real trainers do.
Result<TrainerOutcome> run_trainer(const TrainerOptions& options, TrainerObserver& observer);

}  // namespace tidemark::harness
