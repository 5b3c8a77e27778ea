// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "trainer_harness/helper_process.h"
#include "trainer_harness/plan.h"
#include "trainer_harness/truth.h"

namespace tidemark::harness {

// Processes like those of torch.compile: a sidecar, and a pool that is forked from it and shares
// its heap. All have their memory when start() returns, and end with this process.
class CompilePool {
 public:
  static Result<CompilePool> start(const Plan::Pool& plan);

  pid_t sidecar() const { return helper_.pid; }
  const std::vector<pid_t>& workers() const { return workers_; }  // including those that quit
  // The workers quit, the sidecar stays.
  Status quiesce();

 private:
  explicit CompilePool(HelperProcess helper) : helper_(std::move(helper)) {}
  HelperProcess helper_;
  std::vector<pid_t> workers_;
};

// TORCH_COMPILE_DISABLE=1 is set.
bool compile_is_disabled();

// A dataset in memory and forked DataLoader workers. Each writes a little to every page, as
// reference counts do, and so gets its own copy of the page. They end with this process.
class CowWorkers {
 public:
  static Result<std::unique_ptr<CowWorkers>> start(const Plan::CopyOnWrite& plan);
  ~CowWorkers();
  CowWorkers(const CowWorkers&) = delete;
  CowWorkers& operator=(const CowWorkers&) = delete;

  const std::vector<pid_t>& workers() const { return workers_; }
  // The workers go on to write the pages that are due at this step.
  void on_step(std::uint64_t step);

 private:
  struct Memory;
  explicit CowWorkers(const Plan::CopyOnWrite& plan);
  [[noreturn]] void work(pid_t parent) const;

  Plan::CopyOnWrite plan_;
  std::unique_ptr<Memory> memory_;
  std::vector<pid_t> workers_;
};

// Segments in /dev/shm that are written, closed and never unlinked. Unless `keep` is set, a process
// like torch_shm_manager unlinks them after this process has ended, also by SIGKILL.
class ShmSegments {
 public:
  static Result<ShmSegments> start(bool keep);

  Status leak_one(std::uint64_t bytes, LeakLines& lines);
  std::optional<pid_t> manager() const;

 private:
  ShmSegments(std::string prefix, std::optional<HelperProcess> manager)
      : prefix_(std::move(prefix)), manager_(std::move(manager)) {}

  std::string prefix_;  // of the names of our segments, unique
  std::optional<HelperProcess> manager_;
  std::uint64_t count_ = 0;
};

}  // namespace tidemark::harness
