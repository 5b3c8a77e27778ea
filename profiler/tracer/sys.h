// SPDX-License-Identifier: Apache-2.0
// System calls that are neither hooked, nor cancellation points, nor writers of errno. Each returns
// what the kernel returns: a negative error number on failure.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidemark::tracer::sys {

// Not 0 once the program has installed a seccomp filter that may kill it for a call which it does
// not make itself: all functions below but call() then fail with EPERM. A child of vfork runs in
// our memory: its filter counts until it becomes another program.
inline constexpr std::uint32_t kOwnFilter = 1;
inline constexpr std::uint32_t kChildFilter = 2;  // added for each such child
inline constinit std::atomic<std::uint32_t> g_calls_stopped = 0;

inline bool calls_are_stopped() noexcept {
  return g_calls_stopped.load(std::memory_order_relaxed) != 0;
}

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) noexcept {
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

inline long call_if_allowed(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                            long f = 0) noexcept {
  return calls_are_stopped() ? -EPERM : call(number, a, b, c, d, e, f);
}

inline long word(const void* pointer) noexcept { return reinterpret_cast<long>(pointer); }

inline int getpid() noexcept { return static_cast<int>(call_if_allowed(SYS_getpid)); }
inline int getppid() noexcept { return static_cast<int>(call_if_allowed(SYS_getppid)); }
inline void yield() noexcept {
  if (call_if_allowed(SYS_sched_yield) != 0) {
    __builtin_ia32_pause();
  }
}

inline void sleep_briefly() noexcept {
  constexpr timespec kPause = {0, 50'000};
  if (call_if_allowed(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, word(&kPause), 0) != 0) {
    for (int i = 0; i < 1000; ++i) {  // about as long
      __builtin_ia32_pause();
    }
  }
}

inline int open_at(int folder, const char* path, int flags, unsigned mode = 0) noexcept {
  return static_cast<int>(call_if_allowed(SYS_openat, folder, word(path), flags | O_CLOEXEC, mode));
}
inline int open(const char* path, int flags, unsigned mode = 0) noexcept {
  return open_at(AT_FDCWD, path, flags, mode);
}
// Of open(): it says nothing of the file.
inline bool has_no_descriptors(int opened) noexcept {
  return opened == -EMFILE || opened == -ENFILE;
}
inline void close(int fd) noexcept { call_if_allowed(SYS_close, fd); }
inline long read(int fd, void* buffer, std::size_t bytes) noexcept {
  return call_if_allowed(SYS_read, fd, word(buffer), static_cast<long>(bytes));
}
inline long readlink(const char* path, char* buffer, std::size_t bytes) noexcept {
  return call_if_allowed(SYS_readlinkat, AT_FDCWD, word(path), word(buffer),
                         static_cast<long>(bytes));
}
inline int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(call_if_allowed(SYS_rename, word(from), word(to)));
}
inline int unlink(const char* path) noexcept {
  return static_cast<int>(call_if_allowed(SYS_unlink, word(path)));
}
inline int fallocate(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  return static_cast<int>(
      call_if_allowed(SYS_fallocate, fd, 0, static_cast<long>(offset), static_cast<long>(bytes)));
}
inline int truncate(int fd, std::uint64_t bytes) noexcept {
  return static_cast<int>(call_if_allowed(SYS_ftruncate, fd, static_cast<long>(bytes)));
}
inline int fstat(int fd, struct stat* result) noexcept {
  return static_cast<int>(call_if_allowed(SYS_fstat, fd, word(result)));
}
inline int stat(const char* path, struct stat* result) noexcept {
  return static_cast<int>(call_if_allowed(SYS_newfstatat, AT_FDCWD, word(path), word(result), 0));
}
inline int flock(int fd, int how) noexcept {
  return static_cast<int>(call_if_allowed(SYS_flock, fd, how));
}
// Without the capabilities of the process, which it loses when it becomes another program, unless
// its user is root.
inline int access(const char* path, int how) noexcept {
  return static_cast<int>(call_if_allowed(SYS_faccessat, AT_FDCWD, word(path), how));
}
inline int fstatfs(int fd, struct statfs* result) noexcept {
  return static_cast<int>(call_if_allowed(SYS_fstatfs, fd, word(result)));
}
// Another descriptor for the same file, close-on-exec, with a number of at least `lowest`.
inline int duplicate(int fd, int lowest) noexcept {
  return static_cast<int>(call_if_allowed(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest));
}
inline int getrlimit(int which, rlimit* result) noexcept {
  return static_cast<int>(call_if_allowed(SYS_prlimit64, 0, which, 0, word(result)));
}

// Where the next mapping of the tracer goes, if that is free: below the mappings that the kernel
// has placed, and not among them. A program may leave a hole there to fill it by MAP_FIXED later,
// and what we had put into it would be gone.
inline constinit std::atomic<std::uint64_t> g_next_place = 0;

inline long take_place(std::size_t bytes) noexcept {
  constexpr std::uint64_t kFirst = 0x7e90'0000'0000;
  constexpr std::uint64_t kRandom = 0x3f'ffff'f000;  // as our own address is
  constexpr std::uint64_t kPage = 4096;
  constexpr std::uint64_t kLargePage = 2U << 20U;
  const std::uint64_t align = bytes < kLargePage ? kPage : kLargePage;
  std::uint64_t next = g_next_place.load(std::memory_order_relaxed);
  std::uint64_t place = 0;
  do {
    const auto first = kFirst + (static_cast<std::uint64_t>(word(&g_next_place)) & kRandom);
    place = ((next == 0 ? first : next) + align - 1) & ~(align - 1);
  } while (!g_next_place.compare_exchange_weak(next, place + ((bytes + kPage - 1) & ~(kPage - 1)),
                                               std::memory_order_relaxed));
  return static_cast<long>(place);
}

// nullptr: failed.
inline void* map(std::size_t bytes, int flags, int fd, std::uint64_t offset) noexcept {
  const long result = call_if_allowed(SYS_mmap, take_place(bytes), static_cast<long>(bytes),
                                      PROT_READ | PROT_WRITE, flags, fd, static_cast<long>(offset));
  const bool failed = result < 0 && result > -4096;
  return failed ? nullptr : reinterpret_cast<void*>(result);
}
inline void* map_private(std::size_t bytes) noexcept {
  return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
inline void unmap(void* address, std::size_t bytes) noexcept {
  call_if_allowed(SYS_munmap, word(address), static_cast<long>(bytes));
}
inline int madvise(void* address, std::size_t bytes, int advice) noexcept {
  return static_cast<int>(
      call_if_allowed(SYS_madvise, word(address), static_cast<long>(bytes), advice));
}

// CLOCK_MONOTONIC, by the vDSO: cheap enough for a hook. 0 where system calls are stopped: the vDSO
// may make one, and strict mode makes the time stamp counter a fault.
inline std::uint64_t monotonic_ns() noexcept {
  if (calls_are_stopped()) {
    return 0;
  }
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace tidemark::tracer::sys
