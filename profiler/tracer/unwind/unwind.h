// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/tracer/unwind/stack_bounds.h"
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {

// What unwind() needs from ld.so. At start-up only, never from a hook; without it stacks have one
// frame. Whether ld.so has a lock-free lookup.
bool start_unwinder() noexcept;

// Replaces `trace` by the stack from `registers` outwards. Runs in the malloc hook: no lock, no
// allocation, no call into ld.so but its lock-free lookup, errno untouched; a stack or a table that
// makes no sense ends the trace. What did not change since the last trace of this slot is compared,
// not walked again. `bounds` is stack_bounds(registers.sp).
void unwind(const Registers& registers, StackBounds bounds, StackTrace& trace) noexcept;

}  // namespace tidemark::tracer
