// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/stack_bounds.h"

#include <dlfcn.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>

#include "profiler/tracer/unwind/byte_reader.h"

namespace tidemark::tracer {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kForeignBytes = 64ULL * 1024;
constexpr std::uint64_t kLargestStackBytes = 64ULL * 1024 * 1024;
constexpr std::uint64_t kControlBlockBytes = 2048;  // of a thread; that of glibc has some more

// What is known about the stacks of this thread.
struct KnownStacks {
  std::uint64_t bottom;  // of its own stack; below may be a stack of others, which can be unmapped
  std::uint64_t low;     // [low, high) of its own stack is readable
  std::uint64_t high;
  std::uint64_t foreign_low;  // [foreign_low, foreign_high) is not connected to its own stack
  std::uint64_t foreign_high;
  std::uint64_t wanted_pages;  // of foreign stacks, after that of sp
};
constinit thread_local KnownStacks g_stacks = {};

constinit std::atomic<std::uint64_t> g_main_stack_end{0};
constinit std::atomic<std::uint64_t> g_main_block{0};  // its thread control block; 0: not known yet
constinit std::atomic<bool> g_cannot_probe{false};
constinit std::atomic<std::int32_t> g_times_forbidden{0};

bool can_probe() noexcept {
  return g_times_forbidden.load(std::memory_order_relaxed) == 0 &&
         !g_cannot_probe.load(std::memory_order_relaxed);
}

std::uint64_t page_of(std::uint64_t address) noexcept { return address & ~(kPageBytes - 1); }

#if defined(__x86_64__)
std::uint64_t thread_pointer() noexcept {
  std::uint64_t value;
  asm("mov %%fs:0, %0" : "=r"(value));
  return value;
}

// Not by syscall(), which the tracer hooks.
long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0) noexcept {
  long result;
  register long r10 asm("r10") = d;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
               : "rcx", "r11", "memory");
  return result;
}
#else
std::uint64_t thread_pointer() noexcept { return 0; }
long system_call(long, long = 0, long = 0, long = 0, long = 0) noexcept { return -EFAULT; }
#endif

// rt_sigprocmask(2) copies the new mask from user space before it looks at `how`, so that with an
// invalid `how` it changes nothing and answers EFAULT or EINVAL. No sandbox forbids it.
long probe(std::uint64_t address) noexcept {
  constexpr long kMaskBytes = 8;
  return system_call(SYS_rt_sigprocmask, -1, static_cast<long>(address), 0, kMaskBytes);
}

// The end of the readable pages from that of `begin` on, at most `end`.
std::uint64_t readable_until(std::uint64_t begin, std::uint64_t end) noexcept {
  for (std::uint64_t page = page_of(begin); page < end; page += kPageBytes) {
    if (!is_readable(page)) {
      return page > begin ? page : begin;
    }
  }
  return end;
}

// The stack that a thread was created with, from its control block, which glibc puts at the top of
// that. The block holds the lowest address and the size of the stack in neighbouring words, at an
// offset that depends on the version. {}: not found.
ByteRange stack_below(std::uint64_t block) noexcept {
  constexpr std::uint64_t kMostAbove = 64ULL * 1024;  // the block itself, and what is behind it
  constexpr std::uint64_t kMostBytes = 1ULL << 36;    // a larger number is no size but an address
  if (!is_readable(block + kControlBlockBytes - 8)) {
    return {};
  }
  for (std::uint64_t at = block; at < block + kControlBlockBytes - 8; at += 8) {
    const std::uint64_t begin = load_word(at);
    const std::uint64_t bytes = load_word(at + 8);
    if (begin < block - kPageBytes && bytes <= kMostBytes && bytes > block - begin &&
        bytes - (block - begin) <= kMostAbove) {
      return {begin, block};
    }
  }
  return {};
}

bool is_first_thread() noexcept { return system_call(SYS_gettid) == system_call(SYS_getpid); }

// The stack that the calling thread was created with; of a very large one only the upper part.
ByteRange own_stack() noexcept {
  const std::uint64_t block = thread_pointer();
  const std::uint64_t main_block = g_main_block.load(std::memory_order_relaxed);
  ByteRange stack = block == main_block ? ByteRange{} : stack_below(block);
  // The first thread of a process may be another one than before a fork: it has such a stack.
  if (stack.end == 0 && (block == main_block || (main_block == 0 && is_first_thread()))) {
    g_main_block.store(block, std::memory_order_relaxed);
    stack = {0, g_main_stack_end.load(std::memory_order_relaxed)};
  }
  if (stack.end - stack.begin > kLargestStackBytes) {
    stack.begin = stack.end - kLargestStackBytes;
  }
  return stack;
}

// What is below `begin` is readable.
StackBounds foreign_bounds(std::uint64_t sp, std::uint64_t begin) noexcept {
  const std::uint64_t limit = page_of(sp) + kForeignBytes;
  const std::uint64_t wanted = page_of(sp) + (1 + g_stacks.wanted_pages) * kPageBytes;
  return {begin < wanted ? readable_until(begin, wanted) : begin, limit};
}

// The end of the page that holds the word below sp, the last return address of a running thread.
std::uint64_t end_of_page_below(std::uint64_t sp) noexcept { return page_of(sp - 1) + kPageBytes; }

// [sp, readable) is known to be readable.
[[gnu::noinline]] StackBounds find_bounds(std::uint64_t sp, std::uint64_t readable) noexcept {
  KnownStacks& known = g_stacks;
  if (sp >= known.foreign_low && sp < known.foreign_high) {
    return foreign_bounds(sp, readable);
  }
  if (known.high == 0) {
    const ByteRange own = own_stack();
    known.bottom = own.begin;
    known.low = own.end;
    known.high = own.end;
  }
  if (sp < known.bottom || sp >= known.low) {
    return foreign_bounds(sp, readable);
  }
  const std::uint64_t reached = readable_until(sp, known.low);
  if (reached < known.low) {
    known.foreign_low = page_of(sp);
    known.foreign_high = reached;
    return foreign_bounds(sp, readable);
  }
  known.low = page_of(sp);
  return {known.high};
}

}  // namespace

void resolve_stack_end() noexcept {
  if (const void* const symbol = dlsym(RTLD_DEFAULT, "__libc_stack_end"); symbol != nullptr) {
    g_main_stack_end.store(*static_cast<const std::uint64_t*>(symbol), std::memory_order_relaxed);
  }
  // In a process that runs already, any thread may come here.
  g_main_block.store(is_first_thread() ? thread_pointer() : 0, std::memory_order_relaxed);
  // Address 8 is never mapped: another answer than EFAULT is not the kernel's.
  g_cannot_probe.store(probe(8) != -EFAULT, std::memory_order_relaxed);
}

void allow_probing(bool allow) noexcept {
  g_times_forbidden.fetch_add(allow ? -1 : 1, std::memory_order_relaxed);
}

StackBounds stack_bounds(std::uint64_t sp) noexcept {
  const KnownStacks& known = g_stacks;
  if (sp >= known.low && sp < known.high) [[likely]] {
    return {known.high};
  }
  if (!can_probe()) [[unlikely]] {
    const std::uint64_t end = end_of_page_below(sp);
    return {end == known.low ? known.high : end};
  }
  return find_bounds(sp, end_of_page_below(sp));
}

StackBounds bounds_of_interrupted(std::uint64_t sp) noexcept {
  const KnownStacks& known = g_stacks;
  if (sp >= known.low && sp < known.high) {
    return {known.high};
  }
  return can_probe() ? find_bounds(sp, sp) : StackBounds{};
}

bool extend_bounds(StackBounds& bounds, std::uint64_t address) noexcept {
  if (address < bounds.high || address >= bounds.limit) {
    return address < bounds.high;
  }
  const std::uint64_t wanted = page_of(address) + kPageBytes;
  bounds.high = readable_until(bounds.high, wanted);
  if (bounds.high < wanted) {
    bounds.limit = bounds.high;  // not tried again
    return false;
  }
  const std::uint64_t pages = (kForeignBytes - (bounds.limit - wanted)) / kPageBytes - 1;
  g_stacks.wanted_pages = pages > g_stacks.wanted_pages ? pages : g_stacks.wanted_pages;
  return true;
}

bool is_own_stack(std::uint64_t low, std::uint64_t high) noexcept {
  bounds_of_interrupted(low);  // updates g_stacks
  return low >= g_stacks.low && high < g_stacks.high;
}

bool is_readable(std::uint64_t address) noexcept {
  return can_probe() && probe(address) == -EINVAL;
}

}  // namespace tidemark::tracer
