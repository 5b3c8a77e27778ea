// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/result.h"

namespace tidemark::harness {

// What tidemark-harness-helper is to be, in its environment: its argv is that of the program for
// which it stands. The parts of the value are separated by blanks.
inline constexpr const char* kHelperVariable = "TIDEMARK_HARNESS_HELPER";
// The pid of its wrapper, for the trainer below one. Not getppid(): that changes when the wrapper
// is killed.
inline constexpr const char* kWrappedVariable = "TIDEMARK_HARNESS_WRAPPED";

// The helper, beside the program that runs.
Result<std::string> helper_path();

// A started helper with a pipe to it and one from it. When the pipe to it closes, it ends; so it
// ends with us, however we end.
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

// Starts it with the given argv; descriptors for `--read-fd` and `--write-fd` stand in for the
// words "READ_FD" and "WRITE_FD" in `argv` and `role`.
Result<HelperProcess> start_helper(std::vector<std::string> argv, std::string role);

}  // namespace tidemark::harness
