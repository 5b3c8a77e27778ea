// SPDX-License-Identifier: Apache-2.0
// Mappings that the target makes by itself: anonymous and shared ones. Files that are mapped
// privately are no memory of the process until written to, and are left out.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/export.h"
#include "profiler/tracer/life.h"
#include "profiler/tracer/next_allocator.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/sys.h"
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {
namespace {

void* map_result(long result) noexcept {
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(result);
}

constexpr std::size_t whole_pages(std::size_t bytes) { return (bytes + 4095) & ~std::size_t{4095}; }

wire::SiteKind kind_of(int flags, std::uint64_t caller) noexcept {
  if (is_in_allocator(reinterpret_cast<const void*>(caller))) {
    return wire::SiteKind::kAllocatorMap;
  }
  // MAP_SHARED_VALIDATE has the bits of both of the others.
  return (flags & MAP_TYPE) == MAP_PRIVATE ? wire::SiteKind::kAnonymousMap
                                           : wire::SiteKind::kSharedMap;
}

[[gnu::noinline]] void* map_recorded(void* address, std::size_t bytes, int protection, int flags,
                                     int fd, off_t offset) {
  void* const begin = map_result(sys::call(SYS_mmap, sys::word(address), static_cast<long>(bytes),
                                           protection, flags, fd, offset));
  const bool file = (flags & MAP_ANONYMOUS) == 0;
  const bool is_private = (flags & MAP_TYPE) == MAP_PRIVATE;
  if (begin == MAP_FAILED) {
    return begin;
  }
  const Registers caller = capture_registers();
  if (!(file && is_private)) {
    g_recorder.mapped(begin, whole_pages(bytes), kind_of(flags, caller.ip), caller);
  } else if ((flags & MAP_FIXED) != 0) {
    g_recorder.unmapped(begin, whole_pages(bytes));  // it replaced what was there
  }
  return begin;
}

[[gnu::noinline]] void* remap_recorded(void* from, std::size_t old_bytes, std::size_t bytes,
                                       int flags, void* to) {
  Recorder::MovedRanges moved;
  const bool stays = old_bytes == 0 || (flags & MREMAP_DONTUNMAP) != 0;
  g_recorder.begin_remap(from, whole_pages(old_bytes), stays, moved);
  void* const begin =
      map_result(sys::call(SYS_mremap, sys::word(from), static_cast<long>(old_bytes),
                           static_cast<long>(bytes), flags, sys::word(to)));
  if (begin == MAP_FAILED) {
    g_recorder.not_remapped(moved);
  } else {
    g_recorder.remapped(moved, begin, whole_pages(bytes), capture_registers());
  }
  return begin;
}

}  // namespace
}  // namespace tidemark::tracer

using namespace tidemark::tracer;  // NOLINT(google-build-using-namespace): C names follow

TIDEMARK_EXPORT void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd,
                           off_t offset) {
  return map_recorded(address, bytes, protection, flags, fd, offset);
}

TIDEMARK_EXPORT void* mmap64(void* address, std::size_t bytes, int protection, int flags, int fd,
                             off64_t offset) {
  return map_recorded(address, bytes, protection, flags, fd, offset);
}

TIDEMARK_EXPORT int munmap(void* address, std::size_t bytes) {
  // First here: once it is unmapped, another thread may get a mapping at this place. What the
  // kernel will refuse does not change the books.
  if (bytes != 0 && reinterpret_cast<std::uintptr_t>(address) % 4096 == 0) {
    g_recorder.unmapped(address, whole_pages(bytes));
  }
  const long result = sys::call(SYS_munmap, sys::word(address), static_cast<long>(bytes));
  if (result < 0) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return 0;
}

TIDEMARK_EXPORT void* mremap(void* from, std::size_t old_bytes, std::size_t bytes, int flags, ...) {
  void* to = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list more;
    va_start(more, flags);
    to = va_arg(more, void*);
    va_end(more);
  }
  return remap_recorded(from, old_bytes, bytes, flags, to);
}
