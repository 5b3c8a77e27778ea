// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/glibc_heaps.h"

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/heap/made_up_memory.h"

namespace tidemark::heap {
namespace {

using tests::made_up_mapping;
using tests::MadeUpMemory;

constexpr std::uint64_t kHeapBytes = 64U << 20U;
constexpr std::uint64_t kLibc = 0x10000;       // its data
constexpr std::uint64_t kMain = 0x200000;      // [heap]
constexpr std::uint64_t kThread = kHeapBytes;  // of a thread

// glibc 2.27 and later.
constexpr std::uint64_t kTop = 96;
constexpr std::uint64_t kBins = 112;
constexpr std::uint64_t kNext = kBins + 254 * 8 + 16;

// A process with a main heap and one of a thread, all of whose bins are empty.
class MadeUpMalloc {
 public:
  MadeUpMalloc() {
    put_state(main(), kMain + 0x8000);
    memory.put(main() + kNext, thread());
    memory.put(thread() + kNext, main());
    put_state(thread(), kThread + 0x4000);
    memory.put(kThread, thread());  // heap_info
    memory.put(kThread + 8, 0);
    memory.put(kThread + 16, 0x6000);
    memory.put(kThread + 24, 0x6000);
    memory.put(kMain + 0x8000 + 8, 0x2001);  // top chunks
    memory.put(kThread + 0x4000 + 8, 0x2001);
  }

  static std::uint64_t main() { return kLibc + 0x40; }
  static std::uint64_t thread() { return kThread + 0x30; }
  static std::uint64_t bin(std::uint64_t state, std::uint64_t number) {
    return state + kBins + 16 * number - 16;
  }

  void put_state(std::uint64_t state, std::uint64_t top) {
    memory.put(state + kTop, top);
    for (std::uint64_t number = 0; number < 127; ++number) {
      memory.put(bin(state, number) + 16, bin(state, number));
      memory.put(bin(state, number) + 24, bin(state, number));
    }
    memory.put(state + kNext + 24, 0xa000);  // taken from the system
    memory.put(state + kNext + 32, 0xa000);
  }
  void add_free(std::uint64_t state, std::uint64_t number, std::uint64_t chunk,
                std::uint64_t bytes) {
    const std::uint64_t head = bin(state, number);
    const std::uint64_t next = memory.word(head + 16);
    memory.put(chunk + 8, bytes | 1);
    memory.put(chunk + 16, next);
    memory.put(chunk + 24, head);
    memory.put(next + 24, chunk);
    memory.put(head + 16, chunk);
  }

  MallocHeaps find() {
    return find_malloc_heaps(mappings, memory.queries(), [] { return false; });
  }

  MadeUpMemory memory;
  std::vector<inject::Mapping> mappings{
      made_up_mapping(kLibc, kLibc + 0x2000, "/lib/x86_64-linux-gnu/libc.so.6"),
      made_up_mapping(kMain, kMain + 0xa000, "[heap]"), made_up_mapping(kThread, kThread + 0x6000)};
};

std::uint64_t free_of(const MallocHeaps& heaps, std::uint64_t begin) {
  for (const MallocHeap& heap : heaps.heaps) {
    if (heap.range.begin == begin) {
      return heap.free_bytes;
    }
  }
  return UINT64_MAX;
}

TEST(GlibcHeaps, AreFoundWithWhatIsFreeInThem) {
  MadeUpMalloc malloc;
  malloc.add_free(MadeUpMalloc::main(), 5, kMain + 0x100, 0x40);
  malloc.add_free(MadeUpMalloc::main(), 5, kMain + 0x200, 0x60);
  malloc.add_free(MadeUpMalloc::thread(), 90, kThread + 0x1000, 0x2000);

  const MallocHeaps found = malloc.find();

  ASSERT_EQ(found.heaps.size(), 2U);
  EXPECT_TRUE(found.knows_free);
  EXPECT_FALSE(found.is_partial);
  EXPECT_EQ(free_of(found, kMain), 0x40U + 0x60U + 0x2000U);  // with the top
  EXPECT_EQ(free_of(found, kThread), 0x2000U + 0x2000U);
}

TEST(GlibcHeaps, CountOnlyPagesThatAreThere) {
  MadeUpMalloc malloc;
  malloc.add_free(MadeUpMalloc::thread(), 90, kThread + 0x1000, 0x3000);
  malloc.memory.remove_page(kThread + 0x2000);

  EXPECT_EQ(free_of(malloc.find(), kThread), 0x2000U + 0x2000U);
}

TEST(GlibcHeaps, EndAListThatDoesNotLeadBack) {
  MadeUpMalloc malloc;
  malloc.add_free(MadeUpMalloc::main(), 5, kMain + 0x100, 0x40);
  malloc.memory.put(kMain + 0x100 + 16, kMain + 0x300);  // no chunk leads back to it

  const MallocHeaps found = malloc.find();

  EXPECT_TRUE(found.is_partial);
  EXPECT_EQ(free_of(found, kMain), 0x40U + 0x2000U);
}

TEST(GlibcHeaps, EndAListThatIsARing) {
  MadeUpMalloc malloc;
  malloc.add_free(MadeUpMalloc::main(), 5, kMain + 0x100, 0x40);
  malloc.memory.put(kMain + 0x100 + 16, kMain + 0x100);
  malloc.memory.put(kMain + 0x100 + 24, kMain + 0x100);

  EXPECT_TRUE(malloc.find().is_partial);
}

TEST(GlibcHeaps, RefuseChunksThatAreLargerThanTheirHeap) {
  MadeUpMalloc malloc;
  malloc.add_free(MadeUpMalloc::main(), 126, kMain + 0x100, 0x7fff'ffff'fff0);

  const MallocHeaps found = malloc.find();

  EXPECT_TRUE(found.is_partial);
  EXPECT_EQ(free_of(found, kMain), 0x2000U);
}

TEST(GlibcHeaps, AreNotAnyMemoryThatBeginsAtSixtyFourMiB) {
  MadeUpMalloc malloc;
  malloc.memory.put(kThread, kThread + 0x30000);  // a state that is nowhere near
  malloc.memory.put(MadeUpMalloc::main() + kNext, MadeUpMalloc::main());

  const MallocHeaps found = malloc.find();

  ASSERT_EQ(found.heaps.size(), 1U);
  EXPECT_TRUE(found.heaps[0].is_main);
  EXPECT_TRUE(found.knows_free);
}

TEST(GlibcHeaps, OfAnotherAllocatorAreNotKnown) {
  MadeUpMalloc malloc;
  malloc.memory.put(MadeUpMalloc::main() + kNext + 24, 0);  // nothing came from the system

  const MallocHeaps found = malloc.find();

  EXPECT_FALSE(found.knows_free);
  EXPECT_EQ(found.heaps.size(), 2U);
}

TEST(GlibcHeaps, AreGuessedByTheirShapeWhereNothingCanBeRead) {
  inject::Mapping rest = made_up_mapping(kThread + 0x6000, 2 * kHeapBytes);
  rest.is_writable = false;
  rest.is_readable = false;
  const std::vector<inject::Mapping> mappings{
      made_up_mapping(kMain, kMain + 0xa000, "[heap]"), made_up_mapping(kThread, kThread + 0x6000),
      rest, made_up_mapping(3 * kHeapBytes, 3 * kHeapBytes + 0x6000)};

  const MallocHeaps found = guess_malloc_heaps(mappings);

  ASSERT_EQ(found.heaps.size(), 2U);
  EXPECT_TRUE(found.heaps[0].is_main);
  EXPECT_EQ(found.heaps[1].range.begin, kThread);
  EXPECT_FALSE(found.knows_free);
}

}  // namespace
}  // namespace tidemark::heap
