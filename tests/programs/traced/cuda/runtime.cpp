// SPDX-License-Identifier: Apache-2.0
// A stand-in for the CUDA runtime with the name and the symbol versions of the real one. Its device
// is a counter; its pinned memory comes from the kernel, past every hook.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace {

int g_calls = 0;
std::uint64_t g_next_device = 0;

int take_device(void** block, std::size_t bytes) {
  ++g_calls;
  if (bytes > std::size_t{1} << 40U) {
    return 2;  // cudaErrorMemoryAllocation
  }
  if (g_next_device == 0) {  // no two runtimes of a process hand out the same address
    g_next_device = 0x1000'0000'0000 + reinterpret_cast<std::uint64_t>(&g_calls) / 512 * 512;
  }
  *block = reinterpret_cast<void*>(g_next_device);
  g_next_device += (bytes + 511) / 512 * 512;
  return 0;
}
int take_pinned(void** block, std::size_t bytes) {
  ++g_calls;
  *block = reinterpret_cast<void*>(::syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return 0;
}
int done() {
  ++g_calls;
  return 0;
}

}  // namespace

extern "C" {
int cudaMalloc(void** block, std::size_t bytes) { return take_device(block, bytes); }
int cudaMallocAsync(void** block, std::size_t bytes, void*) { return take_device(block, bytes); }
int cudaMallocHost(void** block, std::size_t bytes) { return take_pinned(block, bytes); }
int cudaHostAlloc(void** block, std::size_t bytes, unsigned) { return take_pinned(block, bytes); }
int cudaHostRegister(void*, std::size_t, unsigned) { return done(); }
int cudaFree(void*) { return done(); }
int cudaFreeAsync(void*, void*) { return done(); }
int cudaFreeHost(void*) { return done(); }
int cudaHostUnregister(void*) { return done(); }
int cudaStandInCalls() { return g_calls; }
}
