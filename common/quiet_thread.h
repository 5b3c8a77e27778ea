// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>

#include <array>
#include <thread>
#include <utility>

#include "common/signal_stack.h"

namespace tidemark {

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
