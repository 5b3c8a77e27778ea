// SPDX-License-Identifier: Apache-2.0
// A program of libtorch without Python that keeps one more storage of 64 KiB, of which no tensor
// knows, each 5 ms, beside eight of 1 MiB that it has from the beginning.
#include <c10/core/CPUAllocator.h>
#include <c10/core/StorageImpl.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using Storage = c10::intrusive_ptr<c10::StorageImpl>;

Storage make_storage(std::size_t bytes) {
  Storage storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, c10::GetCPUAllocator(), /*resizable=*/false);
  std::memset(storage->data(), 1, bytes);
  return storage;
}

}  // namespace

int main() {
  constexpr int kFirst = 8;
  constexpr int kMost = 20'000;  // about a GiB
  std::vector<Storage> kept;
  for (int i = 0; i < kFirst; ++i) {
    kept.push_back(make_storage(std::size_t{1} << 20U));
  }
  std::puts("ready");
  std::fflush(stdout);
  for (int i = 0; i < kMost; ++i) {
    kept.push_back(make_storage(std::size_t{64} << 10U));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}
