// SPDX-License-Identifier: Apache-2.0
// Memory of every sort in known amounts, for ledgers: heaps of threads of which a part was freed, a
// large block, shared memory with and without a name, a mapped file with copied pages. Says "ready"
// and stands still until its input ends.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/programs/memory_victim.h"

namespace {

constexpr std::size_t kMegabyte = 1U << 20U;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

void* mapped(std::size_t bytes, int flags, int fd) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (memory == MAP_FAILED) {
    fail("mmap");
  }
  return memory;
}

void make_file(int fd, std::size_t bytes) {
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    fail("ftruncate");
  }
}

// Blocks of a KiB in the heap of this thread, every one of which is touched; then all but the last
// of each four are freed, so that no page can be given back.
void fill_heap(std::size_t megabytes) {
  std::vector<char*> blocks;
  for (std::size_t i = 0; i < megabytes * 1024; ++i) {
    auto* const block = static_cast<char*>(std::malloc(1000));
    if (block == nullptr) {
      fail("malloc");
    }
    std::memset(block, 1, 1000);
    blocks.push_back(block);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 4 != 3) {
      std::free(blocks[i]);
    }
  }
}

}  // namespace

// ARGV: the name of a segment (below /dev/shm), a file to map, and for how many threads.
int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: memory_rows SEGMENT FILE THREADS\n", stderr);
    return 2;
  }
  const auto threads = static_cast<std::size_t>(std::atoi(argv[3]));
  fill_heap(8);
  const tidemark::victim::Block large(64);

  const int segment = ::shm_open(argv[1], O_RDWR | O_CREAT | O_EXCL, 0600);
  make_file(segment, 12 * kMegabyte);
  std::memset(mapped(12 * kMegabyte, MAP_SHARED, segment), 1, 12 * kMegabyte);
  std::memset(mapped(6 * kMegabyte, MAP_SHARED | MAP_ANONYMOUS, -1), 1, 6 * kMegabyte);

  const int file = ::open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
  make_file(file, 10 * kMegabyte);
  std::memset(mapped(10 * kMegabyte, MAP_SHARED, file), 1, 10 * kMegabyte);
  std::memset(mapped(10 * kMegabyte, MAP_PRIVATE, file), 2, 5 * kMegabyte);  // copies

  std::vector<std::thread> pool;
  int ready[2];
  int stay[2];
  if (::pipe(ready) != 0 || ::pipe(stay) != 0) {
    fail("pipe");
  }
  for (std::size_t i = 0; i < threads; ++i) {
    pool.emplace_back([&] {
      fill_heap(4);
      volatile char deep[512 << 10];  // of its stack
      for (std::size_t at = 0; at < sizeof deep; at += 4096) {
        deep[at] = 1;
      }
      char byte = 1;
      if (::write(ready[1], &byte, 1) != 1 || ::read(stay[0], &byte, 1) < 0) {
        fail("pipe");
      }
    });
  }
  for (std::size_t i = 0; i < threads; ++i) {
    char byte = 0;
    if (::read(ready[0], &byte, 1) != 1) {
      fail("read");
    }
  }
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  ::shm_unlink(argv[1]);
  std::_Exit(0);
}
