// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <cstddef>
#include <memory>

namespace tidemark {

// A stack for the signal handlers (SA_ONSTACK) of the thread that makes it: after an overflow there
// is none left on its own. A thread that has such a stack already keeps it. To be destroyed by the
// same thread.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(SignalStack&&) noexcept = default;
  SignalStack& operator=(SignalStack&&) = delete;

 private:
  static constexpr std::size_t kBytes = std::size_t{64} << 10U;

  std::unique_ptr<std::byte[]> memory_;  // nullptr: it was there, or was moved away
};

}  // namespace tidemark
