// SPDX-License-Identifier: Apache-2.0
// Its main thread ends at once; another one leaks 256 KiB a hundred times, 20 ms apart, and ends
// the process with status 3.
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

[[gnu::noinline]] void* leak_in_thread(std::size_t bytes) {
  void* const block = std::malloc(bytes);
  std::memset(block, 0x5a, bytes);
  return block;
}

void* leak(void*) {
  static void* volatile sink = nullptr;
  for (int i = 0; i < 100; ++i) {
    sink = leak_in_thread(256U << 10U);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::_exit(sink == nullptr ? 1 : 3);
}

}  // namespace

int main() {
  pthread_t thread{};
  if (::pthread_create(&thread, nullptr, leak, nullptr) != 0) {
    return 2;
  }
  ::pthread_exit(nullptr);
}
