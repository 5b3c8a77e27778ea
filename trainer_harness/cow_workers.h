// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "common/result.h"
#include "trainer_harness/plan.h"

namespace tidemark::harness {

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
