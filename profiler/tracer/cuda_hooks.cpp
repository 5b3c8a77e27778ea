// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's allocations: device memory and pinned host memory. Declared here, so that no
// CUDA header is needed. The real functions are looked up in the runtime that is loaded: Python
// loads it with RTLD_LOCAL, where RTLD_NEXT does not find it.
#include <link.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/glibc.h"
#include "profiler/tracer/hooks.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/tracer_state.h"
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {
namespace {

using wire::SiteKind;
using Stream = void*;

constexpr int kSuccess = 0;
constexpr int kNotLoaded = 3;  // cudaErrorInitializationError

constexpr const char* kRuntimes[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0",
                                     "libcudart.so"};

void* look_up_in(const char* library, const char* name) noexcept {
  void* const handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) {
    return nullptr;
  }
  void* const found = dlsym(handle, name);
  real_dlclose(handle);  // the reference that RTLD_NOLOAD took; the library stays
  return found;
}

// In the libraries that the caller is linked to, because wheels carry runtimes with other names;
// then in the runtimes that are loaded.
void* look_up_for(const void* caller, const char* name) noexcept {
  if (void* const found = next_function(name); found != nullptr) {
    return found;
  }
  Dl_info info = {};
  link_map* linked = nullptr;
  if (is_glibc() &&
      dladdr1(caller, &info, reinterpret_cast<void**>(&linked), RTLD_DL_LINKMAP) != 0 &&
      linked->l_name != nullptr && linked->l_name[0] != '\0') {
    if (void* const found = look_up_in(linked->l_name, name); found != nullptr) {
      return found;
    }
  }
  for (const char* const runtime : kRuntimes) {
    if (void* const found = look_up_in(runtime, name); found != nullptr) {
      return found;
    }
  }
  return nullptr;
}

// One real function, looked up once for each caller: a process may have two runtimes, each with
// callers of its own.
template <typename Function>
class CudaFunction {
 public:
  constexpr explicit CudaFunction(const char* name) noexcept : name_(name) {}
  Function get(const void* caller) noexcept {
    Entry* const entry = entry_for(caller);
    void* known = entry != nullptr ? entry->found.load(std::memory_order_acquire) : nullptr;
    if (known == nullptr) {
      known = look_up_for(caller, name_);
      if (entry != nullptr) {
        entry->found.store(known, std::memory_order_release);
      }
    }
    return reinterpret_cast<Function>(known);
  }
  void forget() noexcept {
    for (Entry& entry : entries_) {
      entry.found.store(nullptr, std::memory_order_relaxed);
    }
  }

 private:
  struct Entry {
    std::atomic<const void*> caller = nullptr;
    std::atomic<void*> found = nullptr;
  };
  static constexpr std::size_t kEntries = 64;

  // nullptr: there are too many callers.
  Entry* entry_for(const void* caller) noexcept {
    const auto first = (reinterpret_cast<std::uintptr_t>(caller) * 0x9e3779b97f4a7c15) >> 32U;
    for (std::size_t i = 0; i < kEntries; ++i) {
      Entry& entry = entries_[(first + i) % kEntries];
      const void* there = entry.caller.load(std::memory_order_acquire);
      if (there == caller ||
          (there == nullptr && entry.caller.compare_exchange_strong(there, caller)) ||
          there == caller) {
        return &entry;
      }
    }
    return nullptr;
  }

  const char* name_;
  Entry entries_[kEntries];
};

using Allocate = int (*)(void**, std::size_t);
using AllocateOn = int (*)(void**, std::size_t, Stream);
using AllocateWith = int (*)(void**, std::size_t, unsigned);
using Release = int (*)(void*);
using ReleaseOn = int (*)(void*, Stream);
using Register = int (*)(void*, std::size_t, unsigned);

constinit CudaFunction<Allocate> g_malloc("cudaMalloc");
constinit CudaFunction<AllocateOn> g_malloc_async("cudaMallocAsync");
constinit CudaFunction<Allocate> g_malloc_host("cudaMallocHost");
constinit CudaFunction<AllocateWith> g_host_alloc("cudaHostAlloc");
constinit CudaFunction<Release> g_free("cudaFree");
constinit CudaFunction<ReleaseOn> g_free_async("cudaFreeAsync");
constinit CudaFunction<Release> g_free_host("cudaFreeHost");
constinit CudaFunction<Register> g_register("cudaHostRegister");
constinit CudaFunction<Release> g_unregister("cudaHostUnregister");

// Device addresses may equal host addresses, and a registered block is also a block of malloc: both
// are recorded with an address that no block of the heap can have.
const void* device_key(const void* address) noexcept {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(address) |
                                       (std::uintptr_t{1} << 63U));
}
const void* registered_key(const void* address) noexcept {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(address) |
                                       (std::uintptr_t{1} << 62U));
}

}  // namespace

void forget_cuda_functions() noexcept {
  g_malloc.forget();
  g_malloc_async.forget();
  g_malloc_host.forget();
  g_host_alloc.forget();
  g_free.forget();
  g_free_async.forget();
  g_free_host.forget();
  g_register.forget();
  g_unregister.forget();
}

}  // namespace tidemark::tracer

using namespace tidemark::tracer;  // NOLINT(google-build-using-namespace): C names follow

// No hook has a fast path: these calls take microseconds.

TIDEMARK_EXPORT int cudaMalloc(void** block, std::size_t bytes) {
  const auto real = g_malloc.get(__builtin_return_address(0));
  const int result = real != nullptr ? real(block, bytes) : kNotLoaded;
  if (result == kSuccess) {
    g_recorder.record_cuda_alloc(device_key(*block), bytes, SiteKind::kCudaDevice,
                                 capture_registers());
  }
  return result;
}

TIDEMARK_EXPORT int cudaMallocAsync(void** block, std::size_t bytes, Stream stream) {
  const auto real = g_malloc_async.get(__builtin_return_address(0));
  const int result = real != nullptr ? real(block, bytes, stream) : kNotLoaded;
  if (result == kSuccess) {
    g_recorder.record_cuda_alloc(device_key(*block), bytes, SiteKind::kCudaDevice,
                                 capture_registers());
  }
  return result;
}

TIDEMARK_EXPORT int cudaMallocHost(void** block, std::size_t bytes) {
  const auto real = g_malloc_host.get(__builtin_return_address(0));
  const int result = real != nullptr ? real(block, bytes) : kNotLoaded;
  if (result == kSuccess) {
    g_recorder.record_cuda_alloc(*block, bytes, SiteKind::kCudaPinned, capture_registers());
  }
  return result;
}

TIDEMARK_EXPORT int cudaHostAlloc(void** block, std::size_t bytes, unsigned flags) {
  const auto real = g_host_alloc.get(__builtin_return_address(0));
  const int result = real != nullptr ? real(block, bytes, flags) : kNotLoaded;
  if (result == kSuccess) {
    g_recorder.record_cuda_alloc(*block, bytes, SiteKind::kCudaPinned, capture_registers());
  }
  return result;
}

TIDEMARK_EXPORT int cudaHostRegister(void* block, std::size_t bytes, unsigned flags) {
  const auto real = g_register.get(__builtin_return_address(0));
  const int result = real != nullptr ? real(block, bytes, flags) : kNotLoaded;
  if (result == kSuccess) {
    g_recorder.record_cuda_alloc(registered_key(block), bytes, SiteKind::kCudaRegistered,
                                 capture_registers());
  }
  return result;
}

TIDEMARK_EXPORT int cudaFree(void* block) {
  g_recorder.record_cuda_free(device_key(block));
  const auto real = g_free.get(__builtin_return_address(0));
  return real != nullptr ? real(block) : kNotLoaded;
}

TIDEMARK_EXPORT int cudaFreeAsync(void* block, Stream stream) {
  g_recorder.record_cuda_free(device_key(block));
  const auto real = g_free_async.get(__builtin_return_address(0));
  return real != nullptr ? real(block, stream) : kNotLoaded;
}

TIDEMARK_EXPORT int cudaFreeHost(void* block) {
  g_recorder.record_cuda_free(block);
  const auto real = g_free_host.get(__builtin_return_address(0));
  return real != nullptr ? real(block) : kNotLoaded;
}

TIDEMARK_EXPORT int cudaHostUnregister(void* block) {
  g_recorder.record_cuda_free(registered_key(block));
  const auto real = g_unregister.get(__builtin_return_address(0));
  return real != nullptr ? real(block) : kNotLoaded;
}
