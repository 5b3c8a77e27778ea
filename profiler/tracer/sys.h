// SPDX-License-Identifier: Apache-2.0
// System calls that are neither hooked, nor cancellation points, nor writers of errno. Each returns
// what the kernel returns: a negative error number on failure.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidemark::tracer::sys {

// Once the program has asked for a filter that may kill it for a system call that it does not make
// itself, the tracer makes none either: all below but call() then fail with EPERM while this is not
// 0. A child of vfork runs in our memory: its filter counts until it runs another program.
inline constexpr std::uint32_t kOwnFilter = 1;
inline constexpr std::uint32_t kChildFilter = 2;  // each of them adds it
inline constinit std::atomic<std::uint32_t> g_silent = 0;

inline bool is_silent() noexcept { return g_silent.load(std::memory_order_relaxed) != 0; }

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

// A call that the tracer makes for itself.
inline long own(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                long f = 0) noexcept {
  return is_silent() ? -EPERM : call(number, a, b, c, d, e, f);
}

inline long word(const void* pointer) noexcept { return reinterpret_cast<long>(pointer); }

inline int getpid() noexcept { return static_cast<int>(own(SYS_getpid)); }
inline int getppid() noexcept { return static_cast<int>(own(SYS_getppid)); }
inline void yield() noexcept {
  if (own(SYS_sched_yield) != 0) {
    __builtin_ia32_pause();
  }
}

inline void nap() noexcept {
  constexpr timespec kNap = {0, 50'000};
  if (own(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, word(&kNap), 0) != 0) {
    for (int i = 0; i < 1000; ++i) {  // as long, about
      __builtin_ia32_pause();
    }
  }
}

inline int open(const char* path, int flags, unsigned mode = 0) noexcept {
  return static_cast<int>(own(SYS_openat, AT_FDCWD, word(path), flags | O_CLOEXEC, mode));
}
inline void close(int fd) noexcept { own(SYS_close, fd); }
inline long read(int fd, void* buffer, std::size_t bytes) noexcept {
  return own(SYS_read, fd, word(buffer), static_cast<long>(bytes));
}
inline long write(int fd, const void* buffer, std::size_t bytes) noexcept {
  return own(SYS_write, fd, word(buffer), static_cast<long>(bytes));
}
inline long readlink(const char* path, char* buffer, std::size_t bytes) noexcept {
  return own(SYS_readlinkat, AT_FDCWD, word(path), word(buffer), static_cast<long>(bytes));
}
inline int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(own(SYS_rename, word(from), word(to)));
}
inline int unlink(const char* path) noexcept {
  return static_cast<int>(own(SYS_unlink, word(path)));
}
inline int fallocate(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  return static_cast<int>(
      own(SYS_fallocate, fd, 0, static_cast<long>(offset), static_cast<long>(bytes)));
}
inline int fstat(int fd, struct stat* result) noexcept {
  return static_cast<int>(own(SYS_fstat, fd, word(result)));
}
inline int stat(const char* path, struct stat* result) noexcept {
  return static_cast<int>(own(SYS_newfstatat, AT_FDCWD, word(path), word(result), 0));
}
inline int fstatfs(int fd, struct statfs* result) noexcept {
  return static_cast<int>(own(SYS_fstatfs, fd, word(result)));
}
// Another descriptor for the same file, that exec closes, with a number of at least `lowest`.
inline int duplicate(int fd, int lowest) noexcept {
  return static_cast<int>(own(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest));
}
inline int limit(int which, rlimit* result) noexcept {
  return static_cast<int>(own(SYS_prlimit64, 0, which, 0, word(result)));
}

// nullptr when it could not be mapped.
inline void* map(std::size_t bytes, int flags, int fd, std::uint64_t offset) noexcept {
  const long result = own(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, flags, fd,
                          static_cast<long>(offset));
  const bool failed = result < 0 && result > -4096;
  return failed ? nullptr : reinterpret_cast<void*>(result);
}
inline void* map_private(std::size_t bytes) noexcept {
  return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
inline void unmap(void* address, std::size_t bytes) noexcept {
  own(SYS_munmap, word(address), static_cast<long>(bytes));
}
inline int advise(void* address, std::size_t bytes, int advice) noexcept {
  return static_cast<int>(own(SYS_madvise, word(address), static_cast<long>(bytes), advice));
}

}  // namespace tidemark::tracer::sys
