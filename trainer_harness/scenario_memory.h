// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "trainer_harness/held_tensors.h"
#include "trainer_harness/model.h"
#include "trainer_harness/plan.h"
#include "trainer_harness/truth.h"
#include "trainer_harness/workers.h"

namespace tidemark::harness {

// Does what a plan says about memory, step by step: processes, held tensors, leaks. Dataset and
// collator do their own part.
class ScenarioMemory {
 public:
  using LogLine = std::function<void(std::string_view)>;  // for the user

  ScenarioMemory(const Plan& plan, const TrainerOptions& options, LogLine log_line);

  // Processes are forked before the model exists: it may start threads.
  Status start_processes();
  // Loads what is in memory before the step after `steps_done`.
  Status load(std::uint64_t steps_done);

  Status on_step(std::uint64_t step, Model& model);
  Status on_checkpoint();
  void clean_up();

  std::vector<TruthProcess> processes() const;
  LeakLines& lines() { return lines_; }
  const LeakLines& lines() const { return lines_; }

 private:
  Status leak(Model& model);

  Plan plan_;
  bool keep_shm_;
  LogLine log_line_;
  LeakLines lines_;
  HeldTensors held_;
  std::optional<CompilePool> pool_;
  std::unique_ptr<CowWorkers> cow_workers_;
  std::optional<ShmSegments> segments_;
  bool warned_ = false;
};

}  // namespace tidemark::harness
