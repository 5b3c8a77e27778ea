// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/result.h"
#include "trainer_harness/helper_process.h"
#include "trainer_harness/plan.h"

namespace tidemark::harness {

// Processes as torch.compile starts them: a sidecar, and a pool that is forked from it and shares
// its heap. All have their memory when start() returns, and end with their owner.
class CompilePool {
 public:
  static Result<CompilePool> start(const Plan::Pool& plan);

  pid_t sidecar() const { return helper_.pid; }
  const std::vector<pid_t>& workers() const { return workers_; }  // also those that quit
  // The workers quit, the sidecar stays.
  Status quiesce();

 private:
  explicit CompilePool(HelperProcess helper) : helper_(std::move(helper)) {}
  HelperProcess helper_;
  std::vector<pid_t> workers_;
};

// Whether the user said TORCH_COMPILE_DISABLE=1.
bool compile_is_disabled();

// A dataset in memory and DataLoader workers forked over it. Each writes a little to every page, as
// reference counts do, and so gets a copy of its own of what it writes to. They end with us.
class CowWorkers {
 public:
  static Result<std::unique_ptr<CowWorkers>> start(const Plan::CopyOnWrite& plan);
  ~CowWorkers();
  CowWorkers(const CowWorkers&) = delete;
  CowWorkers& operator=(const CowWorkers&) = delete;

  const std::vector<pid_t>& workers() const { return workers_; }
  // The workers write to what is due at that step, by and by.
  void on_step(std::uint64_t step);

 private:
  struct Memory;
  explicit CowWorkers(const Plan::CopyOnWrite& plan);
  [[noreturn]] void work(pid_t parent) const;

  Plan::CopyOnWrite plan_;
  std::unique_ptr<Memory> memory_;
  std::vector<pid_t> workers_;
};

}  // namespace tidemark::harness
