// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace tidemark {

// Starts a thread that no signal of the process is delivered to: they are the main thread's. Nor
// does SIGPIPE end the process for what this thread writes: the write says EPIPE.
template <typename Work>
std::thread start_quiet_thread(Work work) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace tidemark
