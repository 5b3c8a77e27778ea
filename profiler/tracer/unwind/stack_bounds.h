// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace tidemark::tracer {

// Loads are only made in [sp, high). What lies between high and limit may be readable as well:
// extend_bounds() looks.
struct StackBounds {
  std::uint64_t high = 0;
  std::uint64_t limit = 0;
};

// Learns where the main thread's stack begins (calls ld.so) and whether memory can be probed here.
// At start-up only, by the main thread, never from a hook.
void resolve_stack_end() noexcept;

// Whether system calls may be made: not until all who have forbidden them allow them again. Without
// them, what is not known to be readable counts as not readable.
void allow_probing(bool allow) noexcept;

// The part above `sp` of the stack that holds it, every page of it seen to be readable. Of the main
// thread and of threads of pthread_create: all of it, checked once. Of other stacks (sigaltstack,
// makecontext), which are checked in every call: as many pages as were wanted before, and those up
// to 64 KiB when they are. Of the calling thread, which runs there: the page below `sp` is
// readable.
StackBounds stack_bounds(std::uint64_t sp) noexcept;
// The same where nobody knows that the thread still can run on that stack: it may have overflowed.
StackBounds bounds_of_interrupted(std::uint64_t sp) noexcept;
// Makes the word at `address` a part of the bounds; false where it cannot be.
bool extend_bounds(StackBounds& bounds, std::uint64_t address) noexcept;

// Whether [low, high] is known to be a part of the stack that the calling thread was made with.
bool is_own_stack(std::uint64_t low, std::uint64_t high) noexcept;

// Whether a load from `address` would succeed. A system call; errno untouched.
bool is_readable(std::uint64_t address) noexcept;

// A word of a stack. In assembly because it belongs to another function: to a sanitizer the load
// would be an error.
[[gnu::always_inline]] inline std::uint64_t load_word(std::uint64_t address) noexcept {
#if defined(__x86_64__)
  std::uint64_t value;
  asm volatile("mov %1, %0" : "=r"(value) : "m"(*std::bit_cast<const std::uint64_t*>(address)));
  return value;
#else
  return *std::bit_cast<const std::uint64_t*>(address);
#endif
}

}  // namespace tidemark::tracer
