// SPDX-License-Identifier: Apache-2.0
// What a pair of malloc and free costs: usage: malloc_pairs THREADS DEPTH PAIRS [KEEP]. Each thread
// allocates blocks of 16 to 527 bytes from call stacks of up to DEPTH further frames and frees them
// some time later; prints nanoseconds per pair of one thread. With KEEP, that many blocks of 64
// bytes are made first and stay; prints the resident bytes that the process has then, too.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int kRing = 64;

template <typename T>
void keep(T& value) {
  asm volatile("" : "+r"(value) : : "memory");
}

[[gnu::noinline]] void* allocate(unsigned depth, std::size_t bytes) {
  void* block = depth == 0 ? std::malloc(bytes) : allocate(depth - 1, bytes);
  keep(block);  // no tail call
  return block;
}

void run(unsigned seed, unsigned depth, int pairs) {
  void* ring[kRing] = {};
  for (int i = 0; i < pairs; ++i) {
    seed = seed * 1664525U + 1013904223U;
    void*& place = ring[(seed >> 8U) % kRing];
    std::free(place);
    place = allocate((seed >> 16U) % depth, 16 + ((seed >> 20U) & 511U));
  }
  for (void* block : ring) {
    std::free(block);
  }
}

long resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  long size = 0;
  long pages = 0;
  if (file == nullptr || std::fscanf(file, "%ld %ld", &size, &pages) != 2) {
    std::exit(1);
  }
  std::fclose(file);
  return pages * 4096;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: malloc_pairs THREADS DEPTH PAIRS [KEEP]\n");
    return 2;
  }
  const int threads = std::atoi(argv[1]);
  const auto depth = static_cast<unsigned>(std::atoi(argv[2]));
  const int pairs = std::atoi(argv[3]);
  const int kept = argc > 4 ? std::atoi(argv[4]) : 0;
  for (int i = 0; i < kept; ++i) {
    std::memset(std::malloc(64), 1, 64);
  }
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back(run, static_cast<unsigned>(i) * 7919U + 1U, depth, pairs);
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  std::printf("%.2f %ld\n", took.count() / pairs, resident_bytes());
  return 0;
}
