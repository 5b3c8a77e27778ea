// SPDX-License-Identifier: Apache-2.0
// libtidemark_operators.so: operator new and delete, for programs with an allocator whose own ones
// do not call malloc (tcmalloc, jemalloc, mimalloc). Preloaded only there, after the tracer: in any
// other program operator new must stay that of libstdc++, which Python may load where we could not
// find it.
//
// They call malloc and free, that is through the tracer the same allocator. When memory runs out
// they call the allocator's own operator new, which calls the new handler and throws.
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

// The next one, or that of the C++ runtime, which Python loads where RTLD_NEXT does not find it.
void* find_real(const char* name) {
  if (void* const next = dlsym(RTLD_NEXT, name); next != nullptr) {
    return next;
  }
  void* const runtime = dlopen("libstdc++.so.6", RTLD_LAZY);
  return runtime != nullptr ? dlsym(runtime, name) : nullptr;
}

// Throws or returns a block, never nullptr.
template <typename... Arguments>
void* ask_allocator(const char* name, Arguments... arguments) {
  using Function = void* (*)(Arguments...);
  const auto real = reinterpret_cast<Function>(find_real(name));
  if (real == nullptr) {
    std::abort();
  }
  return real(arguments...);
}

void* aligned(std::size_t bytes, std::align_val_t alignment) noexcept {
  void* block = nullptr;
  const auto align = static_cast<std::size_t>(alignment);
  const std::size_t least = align < sizeof(void*) ? sizeof(void*) : align;
  return posix_memalign(&block, least, bytes) == 0 ? block : nullptr;
}

}  // namespace

#define TIDEMARK_OPERATOR __attribute__((visibility("default"), used))
#define TIDEMARK_PLAIN(name, symbol)                                \
  TIDEMARK_OPERATOR void* name(std::size_t bytes) {                 \
    void* const block = std::malloc(bytes);                         \
    return block != nullptr ? block : ask_allocator(symbol, bytes); \
  }
#define TIDEMARK_ALIGNED(name, symbol)                                          \
  TIDEMARK_OPERATOR void* name(std::size_t bytes, std::align_val_t alignment) { \
    void* const block = aligned(bytes, alignment);                              \
    return block != nullptr ? block : ask_allocator(symbol, bytes, alignment);  \
  }

TIDEMARK_PLAIN(operator new, "_Znwm")
TIDEMARK_PLAIN(operator new[], "_Znam")
TIDEMARK_ALIGNED(operator new, "_ZnwmSt11align_val_t")
TIDEMARK_ALIGNED(operator new[], "_ZnamSt11align_val_t")

TIDEMARK_OPERATOR void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);
}
TIDEMARK_OPERATOR void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);
}
TIDEMARK_OPERATOR void* operator new(std::size_t bytes, std::align_val_t alignment,
                                     const std::nothrow_t&) noexcept {
  return aligned(bytes, alignment);
}
TIDEMARK_OPERATOR void* operator new[](std::size_t bytes, std::align_val_t alignment,
                                       const std::nothrow_t&) noexcept {
  return aligned(bytes, alignment);
}

#define TIDEMARK_DELETE(...)                                                         \
  TIDEMARK_OPERATOR void operator delete(__VA_ARGS__) noexcept { std::free(block); } \
  TIDEMARK_OPERATOR void operator delete[](__VA_ARGS__) noexcept { std::free(block); }

TIDEMARK_DELETE(void* block)
TIDEMARK_DELETE(void* block, std::size_t)
TIDEMARK_DELETE(void* block, std::align_val_t)
TIDEMARK_DELETE(void* block, std::size_t, std::align_val_t)
TIDEMARK_DELETE(void* block, const std::nothrow_t&)
TIDEMARK_DELETE(void* block, std::align_val_t, const std::nothrow_t&)
