// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tidemark::tracer {

// Loads are only made in [sp, high).
struct StackBounds {
  std::uint64_t high = 0;
};

// Learns where the main thread's stack begins (calls ld.so) and whether memory can be probed here.
// At start-up only, never from a hook.
void resolve_stack_end() noexcept;

// The part above `sp` of the stack that holds it, every page of it seen to be readable. Of the main
// thread and of threads of pthread_create: all of it, checked once. Of other stacks (sigaltstack,
// makecontext): the next 64 KiB, as far as they are readable, checked in every call.
StackBounds stack_bounds(std::uint64_t sp) noexcept;

// Whether a load from `address` would succeed. A system call; errno untouched.
bool is_readable(std::uint64_t address) noexcept;

}  // namespace tidemark::tracer
