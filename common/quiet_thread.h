// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>

#include <array>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

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

// What the kernel, or abort(3), sends to the thread that has done wrong.
inline constexpr std::array kCrashSignals = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE,
                                             SIGILL,  SIGTRAP, SIGSYS};

// Starts a thread that no signal of the process is delivered to: they are the main thread's. Nor
// does SIGPIPE end the process for what this thread writes: the write says EPIPE. Its own crashes
// reach their handlers, if there are any (the screen gives the terminal back).
template <typename Work>
std::thread start_quiet_thread(Work work) {
  sigset_t quiet;
  sigset_t before;
  ::sigfillset(&quiet);
  for (const int number : kCrashSignals) {
    ::sigdelset(&quiet, number);
  }
  ::pthread_sigmask(SIG_SETMASK, &quiet, &before);
  std::thread thread([work = std::move(work)]() mutable {
    const SignalStack stack;
    work();
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace tidemark
