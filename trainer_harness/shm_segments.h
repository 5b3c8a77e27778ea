// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/result.h"
#include "trainer_harness/helper_process.h"
#include "trainer_harness/truth.h"

namespace tidemark::harness {

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
