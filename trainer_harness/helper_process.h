// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/result.h"

namespace tidemark::harness {

// Tells tidemark-harness-helper its role; its argv is that of the program it imitates. The parts of
// the value are separated by blanks.
inline constexpr const char* kHelperVariable = "TIDEMARK_HARNESS_HELPER";
// Tells a trainer the pid of its wrapper. Not getppid(), which changes when the wrapper is killed.
inline constexpr const char* kWrappedVariable = "TIDEMARK_HARNESS_WRAPPED";

// The path of the helper: in the folder of this program.
Result<std::string> helper_path();

// A running helper with a pipe to it and one from it. It ends when the pipe to it closes, so also
// when this process is killed.
struct HelperProcess {
  pid_t pid = -1;
  Fd to_helper;
  Fd from_helper;

  HelperProcess() = default;
  HelperProcess(HelperProcess&& other) noexcept
      : pid(std::exchange(other.pid, -1)),
        to_helper(std::move(other.to_helper)),
        from_helper(std::move(other.from_helper)) {}
  HelperProcess& operator=(HelperProcess&&) = delete;
  ~HelperProcess();  // closes the pipes and waits for it
};

// Starts it with the given argv. The words "READ_FD" and "WRITE_FD" in `argv` and `role` are
// replaced by the numbers of its descriptors.
Result<HelperProcess> start_helper(std::vector<std::string> argv, std::string role);

}  // namespace tidemark::harness
