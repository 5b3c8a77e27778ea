// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

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

}  // namespace tidemark::harness
