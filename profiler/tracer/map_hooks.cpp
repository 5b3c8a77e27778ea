// SPDX-License-Identifier: Apache-2.0
// Anonymous and shared mappings of the target. Private mappings of files are not recorded: they use
// no memory of the process until they are written to.
//
// Each call goes to the next function of its name, because other libraries hook mappings too (to
// know which memory is registered with a network card, say). The tracer's own mappings are made by
// system calls: see sys.h.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/hooks.h"
#include "profiler/tracer/next_allocator.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/sys.h"
#include "profiler/tracer/tracer_state.h"
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {
namespace {

// Used until the real functions are looked up.
void* mmap_by_syscall(void* address, std::size_t bytes, int protection, int flags, int fd,
                      off64_t offset) {
  return reinterpret_cast<void*>(set_errno(sys::call(
      SYS_mmap, sys::word(address), static_cast<long>(bytes), protection, flags, fd, offset)));
}
int munmap_by_syscall(void* address, std::size_t bytes) {
  return static_cast<int>(
      set_errno(sys::call(SYS_munmap, sys::word(address), static_cast<long>(bytes))));
}
void* mremap_by_syscall(void* from, std::size_t old_bytes, std::size_t bytes, int flags, void* to) {
  return reinterpret_cast<void*>(
      set_errno(sys::call(SYS_mremap, sys::word(from), static_cast<long>(old_bytes),
                          static_cast<long>(bytes), flags, sys::word(to))));
}

static_assert(sizeof(off_t) == sizeof(off64_t));
using Map = void* (*)(void*, std::size_t, int, int, int, off64_t);
struct NextMap {
  Map mmap = mmap_by_syscall;
  Map mmap64 = mmap_by_syscall;
  int (*munmap)(void*, std::size_t) = munmap_by_syscall;
  // The real one has an ellipsis; the calling convention is the same.
  void* (*mremap)(void*, std::size_t, std::size_t, int, void*) = mremap_by_syscall;
};
constinit NextMap g_next_map;

template <typename Function>
void look_up(Function& function, const char* name) noexcept {
  if (void* const found = next_function(name); found != nullptr) {
    function = reinterpret_cast<Function>(found);
  }
}

constexpr std::size_t whole_pages(std::size_t bytes) { return (bytes + 4095) & ~std::size_t{4095}; }

wire::SiteKind kind_of(int flags, std::uint64_t caller) noexcept {
  const auto* const at = reinterpret_cast<const void*>(caller);
  if (is_in_allocator(at) || maps_recorded_objects(at)) {
    return wire::SiteKind::kAllocatorMap;
  }
  // MAP_SHARED_VALIDATE has the bits of MAP_SHARED and MAP_PRIVATE.
  return (flags & MAP_TYPE) == MAP_PRIVATE ? wire::SiteKind::kAnonymousMap
                                           : wire::SiteKind::kSharedMap;
}

// Inlined into the hooks, which capture the registers of their callers.
[[gnu::always_inline]] inline void* map_and_record(Map next, void* address, std::size_t bytes,
                                                   int protection, int flags, int fd,
                                                   off64_t offset, const Registers& caller) {
  void* const begin = next(address, bytes, protection, flags, fd, offset);
  const bool file = (flags & MAP_ANONYMOUS) == 0;
  const bool is_private = (flags & MAP_TYPE) == MAP_PRIVATE;
  if (begin == MAP_FAILED) {
    return begin;
  }
  if (!(file && is_private)) {
    g_recorder.maps().record_map(begin, whole_pages(bytes), kind_of(flags, caller.ip), caller);
  } else if ((flags & MAP_FIXED) != 0) {
    g_recorder.maps().record_unmap(begin, whole_pages(bytes));  // it replaced what was there
  }
  return begin;
}

[[gnu::noinline]] void* remap_and_record(void* from, std::size_t old_bytes, std::size_t bytes,
                                         int flags, void* to) {
  MapRecorder::MovedRanges moved;
  const bool stays = old_bytes == 0 || (flags & MREMAP_DONTUNMAP) != 0;
  g_recorder.maps().begin_remap(from, whole_pages(old_bytes), stays, moved);
  void* const begin = g_next_map.mremap(from, old_bytes, bytes, flags, to);
  if (begin == MAP_FAILED) {
    g_recorder.maps().undo_remap(moved);
  } else {
    g_recorder.maps().finish_remap(moved, begin, whole_pages(bytes), capture_registers());
  }
  return begin;
}

}  // namespace

void look_up_map_functions() noexcept {
  look_up(g_next_map.mmap, "mmap");
  look_up(g_next_map.mmap64, "mmap64");
  look_up(g_next_map.munmap, "munmap");
  look_up(g_next_map.mremap, "mremap");
}

}  // namespace tidemark::tracer

using namespace tidemark::tracer;  // NOLINT(google-build-using-namespace): C names follow

TIDEMARK_EXPORT void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd,
                           off_t offset) {
  return map_and_record(g_next_map.mmap, address, bytes, protection, flags, fd, offset,
                        capture_registers());
}

TIDEMARK_EXPORT void* mmap64(void* address, std::size_t bytes, int protection, int flags, int fd,
                             off64_t offset) {
  return map_and_record(g_next_map.mmap64, address, bytes, protection, flags, fd, offset,
                        capture_registers());
}

TIDEMARK_EXPORT int munmap(void* address, std::size_t bytes) {
  // Before the call: once the range is unmapped, another thread may map it. Calls that the kernel
  // will refuse are not recorded.
  if (bytes != 0 && reinterpret_cast<std::uintptr_t>(address) % 4096 == 0) {
    g_recorder.maps().record_unmap(address, whole_pages(bytes));
  }
  return g_next_map.munmap(address, bytes);
}

TIDEMARK_EXPORT void* mremap(void* from, std::size_t old_bytes, std::size_t bytes, int flags, ...) {
  void* to = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list more;
    va_start(more, flags);
    to = va_arg(more, void*);
    va_end(more);
  }
  return remap_and_record(from, old_bytes, bytes, flags, to);
}
