// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/thread_state.h"

#include <signal.h>

#include "profiler/tracer/sys.h"
#include "profiler/tracer/unwind/stack_bounds.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

// By the kernel, which also knows where that stack is a part of the thread's own. True when it
// cannot be asked.
bool may_be_on_alternate_stack() noexcept {
  stack_t now = {};
  return sys::call_if_allowed(SYS_sigaltstack, 0, sys::word(&now)) != 0 ||
         (now.ss_flags & SS_ONSTACK) != 0;
}

}  // namespace

bool was_left_by_longjmp(std::uint64_t frame, std::uint64_t here) noexcept {
  return is_own_stack(frame, here) && !may_be_on_alternate_stack();
}

}  // namespace tidemark::tracer
