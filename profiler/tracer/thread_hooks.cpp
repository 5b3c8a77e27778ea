// SPDX-License-Identifier: Apache-2.0
// pthread_create. A thread that runs no Python, such as those of autograd and OpenMP, has no line
// of Python of its own: its stacks get the one that started it.
#include <pthread.h>

#include <atomic>
#include <cstddef>

#include "profiler/tracer/hooks.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/tracer_state.h"
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {
namespace {

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
constinit std::atomic<Create> g_next_create = nullptr;

// What a new thread takes over, until it has.
struct NewThread {
  std::atomic<bool> is_taken = false;
  void* (*run)(void*) = nullptr;
  void* argument = nullptr;
  ThreadOrigin origin;
};
constexpr std::size_t kMostAtOnce = 64;  // further ones start without an origin
constinit NewThread g_new_threads[kMostAtOnce] = {};

NewThread* take_new_thread() noexcept {
  for (NewThread& each : g_new_threads) {
    if (!each.is_taken.load(std::memory_order_relaxed) &&
        !each.is_taken.exchange(true, std::memory_order_acquire)) {
      return &each;
    }
  }
  return nullptr;
}

// The last call is a jump: no frame of ours stays below those of the thread.
void* run_new_thread(void* argument) {
  auto* const own = static_cast<NewThread*>(argument);
  void* (*const run)(void*) = own->run;
  void* const run_argument = own->argument;
  t_thread.origin = own->origin;
  own->is_taken.store(false, std::memory_order_release);
  return run(run_argument);
}

}  // namespace

void look_up_thread_functions() noexcept {
  g_next_create.store(reinterpret_cast<Create>(next_function("pthread_create")),
                      std::memory_order_release);
}

}  // namespace tidemark::tracer

using namespace tidemark::tracer;  // NOLINT(google-build-using-namespace): a C name follows

TIDEMARK_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                   void* (*run)(void*), void* argument) {
  if (g_next_create.load(std::memory_order_acquire) == nullptr) {
    look_up_thread_functions();  // libpthread of old was loaded since
  }
  const Create next = g_next_create.load(std::memory_order_acquire);
  const ThreadOrigin origin = g_recorder.record_thread_start(capture_registers());
  NewThread* const started = origin.site == 0 ? nullptr : take_new_thread();
  if (started == nullptr) {
    return next(thread, attributes, run, argument);
  }
  started->run = run;
  started->argument = argument;
  started->origin = origin;
  const int failed = next(thread, attributes, run_new_thread, started);
  if (failed != 0) {
    started->is_taken.store(false, std::memory_order_release);
  }
  return failed;
}
