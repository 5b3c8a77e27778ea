// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace tidemark::tracer {

// [sp, high) may be read. What is between high and limit may be readable too: see extend_bounds().
struct StackBounds {
  std::uint64_t high = 0;
  std::uint64_t limit = 0;
};

// Finds where the main thread's stack begins (calls ld.so) and whether memory can be probed here.
// When the tracer starts only, never from a hook.
void resolve_stack_end() noexcept;

// Whether memory may be probed, which takes system calls. Calls with false and true must be
// balanced. Without probing, what is not known to be readable counts as not readable.
void allow_probing(bool allow) noexcept;

// The part above `sp` of the stack that contains it, of which every page was seen to be readable.
// For the main thread and those of pthread_create: all of it, checked once. For other stacks
// (sigaltstack, makecontext), which are checked in every call: as many pages as were needed before,
// with a limit of 64 KiB. `sp` must be of the calling thread, so that the page below it is
// readable.
StackBounds stack_bounds(std::uint64_t sp) noexcept;
// The same for a stack pointer of code that a signal interrupted: that stack may have overflowed.
StackBounds bounds_of_interrupted(std::uint64_t sp) noexcept;
// Extends the bounds to the word at `address`. False: it is not readable.
bool extend_bounds(StackBounds& bounds, std::uint64_t address) noexcept;

// Whether [low, high] is known to be on the stack that the calling thread was created with.
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
