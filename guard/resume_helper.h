// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/fd.h"
#include "common/process_key.h"
#include "common/result.h"

namespace tidemark::guard {

// The guard stops a tree before it kills it. This is a small process of its own that resumes what
// is stopped if the guard itself is killed in between: nobody else would. Call start() before any
// thread is started; the rest from one thread, and it allocates nothing.
class ResumeHelper {
 public:
  // Room for so many at a time; more are stopped without a helper.
  static Result<ResumeHelper> start(std::size_t most = std::size_t{1} << 15U);
  // The helper exits.
  ~ResumeHelper();
  ResumeHelper(ResumeHelper&& other) noexcept;
  ResumeHelper& operator=(ResumeHelper&&) = delete;

  // Before the process gets its SIGSTOP.
  void will_stop(const ProcessKey& key);
  // They have got SIGKILL.
  void forget_all();

  pid_t pid() const { return pid_; }

 private:
  struct Shared {
    std::atomic<std::uint32_t> count;
    ProcessKey keys[1];  // as many as there is room for
  };
  ResumeHelper(pid_t pid, Fd life, Shared* shared, std::size_t most, std::size_t bytes)
      : pid_(pid), life_(std::move(life)), shared_(shared), most_(most), bytes_(bytes) {}

  pid_t pid_;
  Fd life_;  // closed by the kernel when we end, however that is
  Shared* shared_;
  std::size_t most_;
  std::size_t bytes_;
};

}  // namespace tidemark::guard
