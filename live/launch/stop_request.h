// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/fd.h"
#include "common/process_key.h"

namespace tidemark::live {

// Tells processes to stop and knows when they have, up to a time. Not thread-safe.
class StopRequest {
 public:
  // Sends `number`. Who has ended by now, or is not ours to signal, is not waited for.
  StopRequest(std::span<const ProcessKey> processes, int number, std::int64_t end_ns);

  // Those that got it have ended, or the time is over.
  bool is_over(std::int64_t now_ns);
  std::int64_t end_ns() const { return end_ns_; }
  // Readable when is_over() may have another answer; -1: only time tells, or a kernel before 5.3.
  int fd() const { return waited_.empty() ? -1 : waited_.front().handle.get(); }

 private:
  struct Waited {
    ProcessKey key;
    Fd handle;
  };
  Fd proc_;
  std::vector<Waited> waited_;
  std::int64_t end_ns_;
};

}  // namespace tidemark::live
