// SPDX-License-Identifier: Apache-2.0
// A library that hooks mappings, as those for fast networks do: it says at its end what it saw.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdarg>
#include <cstdio>

namespace {

int g_mapped = 0;
int g_unmapped = 0;
int g_moved = 0;

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

[[gnu::destructor]] void tell() {
  std::fprintf(stderr, "seen: %d mmap, %d munmap, %d mremap\n", g_mapped, g_unmapped, g_moved);
}

}  // namespace

#define SPY extern "C" [[gnu::visibility("default")]]

SPY void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  ++g_mapped;
  return next<decltype(&mmap)>("mmap")(address, bytes, protection, flags, fd, offset);
}

SPY int munmap(void* address, std::size_t bytes) {
  ++g_unmapped;
  return next<decltype(&munmap)>("munmap")(address, bytes);
}

SPY void* mremap(void* from, std::size_t old_bytes, std::size_t bytes, int flags, ...) {
  ++g_moved;
  void* to = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list more;
    va_start(more, flags);
    to = va_arg(more, void*);
    va_end(more);
  }
  return next<decltype(&mremap)>("mremap")(from, old_bytes, bytes, flags, to);
}
