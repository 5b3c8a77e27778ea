// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "common/clock.h"
#include "common/result.h"

namespace tidemark::heap {

struct FrozenLimits {
  // How long to try, as threads may be in calls that cannot be interrupted.
  std::int64_t timeout_ns = 2 * kNsPerSecond;
  // How long the process may stand still at each attempt until all of its threads have stopped.
  std::int64_t attempt_ns = kNsPerSecond / 10;
};

// A copy of a running process that never runs: its memory as it was at one moment, shared with the
// process until that writes to it. It is made by a single system call, clone(), in one thread of
// the process while all of them stand still; no other code of it runs, nothing of its memory is
// changed, and it is told of no child. As long as the copy lives, whatever the process writes to is
// there twice. When memory gets short, the copy goes first: it gives way on its own (see check()),
// and the kernel takes it before all others.
//
// If this process is killed, the copy is, too, and the process goes on, at any moment: as long as
// the system call takes, the stack of its thread has a frame below the red zone that leads back
// (see inject::WayBack), and what was there is put back. What is left then: a zombie, until the
// process exits or waits for children of all sorts (__WALL); and what any stop does, calls that
// Linux ends with EINTR at a stop (man 7 signal) may have ended so. A process that has no thread on
// a stack of its own, as of Go, cannot be copied.
class FrozenCopy {
 public:
  // An error says why there is no copy; the process runs on as before.
  static Result<FrozenCopy> take(pid_t pid, const FrozenLimits& limits = {});
  ~FrozenCopy();
  FrozenCopy(FrozenCopy&&) noexcept;
  FrozenCopy& operator=(FrozenCopy&&) = delete;

  // As we see it: /proc/PID/maps, pagemap and mem are to be read by any thread. Memory that is
  // shared with other processes is not frozen. What the process keeps from its children
  // (MADV_DONTFORK, memory of devices) is not there.
  pid_t pid() const;
  // When its memory was as it is in the copy, by CLOCK_MONOTONIC.
  std::int64_t taken_ns() const;
  // How long the process stood still, until now: once for taking it, and once for releasing it.
  double paused_s() const;
  // Whether it is still there. An error says why it is not; what was read after that is worthless.
  Status check() const;

  // What the copy costs, as long as it is there.
  struct Cost {
    std::uint64_t page_table_bytes = 0;  // of the copy
    // Memory that the process has written to since, and that therefore is there twice. Reading this
    // takes about 15 ms for each GiB of the process, without an effect on it.
    std::optional<std::uint64_t> copied_bytes;
  };
  Cost cost() const;

  // Ends the copy, and takes its remains out of the process. An error: they are still there as a
  // zombie, which a process notices that waits for children of all sorts (__WALL).
  Status release();

 private:
  struct State;
  explicit FrozenCopy(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace tidemark::heap
