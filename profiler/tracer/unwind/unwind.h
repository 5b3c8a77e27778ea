// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/tracer/unwind/stack_bounds.h"
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {

// Looks up what unwind() needs from ld.so. At start-up only, never from a hook. False: ld.so has no
// lock-free lookup, and stacks have one frame.
bool start_unwinder() noexcept;

// Replaces `trace` by the stack from `registers` outwards. Runs in the malloc hook: no lock, no
// allocation, no call into ld.so but its lock-free lookup, errno untouched; an invalid stack or
// table ends the trace. Frames that did not change since the last trace of this slot are compared,
// not walked again. `bounds` is stack_bounds(registers.sp).
void unwind(const Registers& registers, StackBounds bounds, StackTrace& trace) noexcept;

}  // namespace tidemark::tracer
