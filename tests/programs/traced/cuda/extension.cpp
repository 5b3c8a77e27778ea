// SPDX-License-Identifier: Apache-2.0
// What a framework's extension does with the CUDA runtime that it is linked to.
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

extern "C" {
int cudaMalloc(void**, std::size_t);
int cudaMallocAsync(void**, std::size_t, void*);
int cudaMallocHost(void**, std::size_t);
int cudaHostAlloc(void**, std::size_t, unsigned);
int cudaHostRegister(void*, std::size_t, unsigned);
int cudaFree(void*);
int cudaFreeAsync(void*, void*);
int cudaFreeHost(void*);
int cudaHostUnregister(void*);
int cudaStandInCalls();
}

VICTIM_SITE void* on_device(std::size_t bytes) {
  void* block = nullptr;
  return cudaMalloc(&block, bytes) == 0 ? seen(block) : nullptr;
}
VICTIM_SITE void* on_stream(std::size_t bytes) {
  void* block = nullptr;
  return cudaMallocAsync(&block, bytes, nullptr) == 0 ? seen(block) : nullptr;
}
VICTIM_SITE void* pinned(std::size_t bytes) {
  void* block = nullptr;
  return cudaMallocHost(&block, bytes) == 0 ? seen(block) : nullptr;
}
VICTIM_SITE void* pinned_too(std::size_t bytes) {
  void* block = nullptr;
  return cudaHostAlloc(&block, bytes, 0) == 0 ? seen(block) : nullptr;
}
VICTIM_SITE void* registered(std::size_t bytes) {
  void* const block = seen(std::malloc(bytes));
  return cudaHostRegister(block, bytes, 0) == 0 ? block : nullptr;
}

// 0 when the runtime did what it was asked for.
extern "C" [[gnu::visibility("default")]] int use_cuda() {
  for (std::size_t i = 0; i < 10; ++i) {
    ::dlclose(::dlopen("libc.so.6", RTLD_LAZY));  // gives up a reference, closes nothing
    void* const blocks[] = {on_device(1000), on_stream(2000), pinned(3000), pinned_too(4096),
                            registered(5000)};
    if (i % 2 == 0) {
      cudaFree(blocks[0]);
      cudaFreeAsync(blocks[1], nullptr);
      cudaFreeHost(blocks[2]);
      cudaFreeHost(blocks[3]);
      cudaHostUnregister(blocks[4]);
    }
  }
  if (on_device(std::size_t{1} << 50U) != nullptr) {
    return 2;
  }
  print_held("cuda", {{"on_device", 5000, 5, "device"},
                      {"on_stream", 10000, 5, "device"},
                      {"pinned", 15000, 5, "pinned"},
                      {"pinned_too", 5 * 4096, 5, "pinned"},
                      {"registered", 25000, 5, "registered"},
                      {"registered", 50000, 10, "heap"}});
  return cudaStandInCalls() == 76 ? 0 : 1;
}
