// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/python_arenas.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/heap/made_up_memory.h"

namespace tidemark::heap {
namespace {

using tests::made_up_mapping;
using tests::MadeUpMemory;

constexpr std::uint64_t kData = 0x10000;     // of the interpreter
constexpr std::uint64_t kTable = 0x200000;   // in [heap]
constexpr std::uint64_t kArena = 0x7000000;  // the first; a MiB each from here on
constexpr std::uint64_t kArenaBytes = 1U << 20U;
constexpr std::uint64_t kPoolBytes = 16U << 10U;

struct Pool {
  std::uint64_t blocks;
  std::uint64_t free;
  std::uint64_t next;
  std::uint64_t previous;
  std::uint32_t arena;
  std::uint32_t size_class;
  std::uint32_t offset;
  std::uint32_t most_offset;
};
struct Entry {
  std::uint64_t address;
  std::uint64_t next_pool;
  std::uint32_t free_pools;
  std::uint32_t pools;
  std::uint64_t first_free;
  std::uint64_t next;
  std::uint64_t previous;
};

// An interpreter of 3.11 with so many arenas, in each of which two pools are in use.
class MadeUpArenas {
 public:
  explicit MadeUpArenas(std::uint32_t arenas) {
    runtime.address = kData + 0x100;
    runtime.layout.minor = 11;
    memory.put(kData + 0x808, kTable);
    memory.put(kData + 0x810, kTable + 2 * sizeof(Entry));  // leads into the middle
    for (std::uint32_t i = 0; i < arenas; ++i) {
      const std::uint64_t begin = kArena + i * kArenaBytes;
      memory.put_record(kTable + i * sizeof(Entry),
                        Entry{begin, begin + 2 * kPoolBytes, 62, 64, 0, 0, 0});
      put_pool(begin, {10, 0, 0, 0, i, 31, 0, 0});               // 10 blocks of 512 bytes
      put_pool(begin + kPoolBytes, {100, 0, 0, 0, i, 3, 0, 0});  // 100 of 64
    }
    mappings = {made_up_mapping(kData, kData + 0x1000, "/usr/bin/python3.11"),
                made_up_mapping(kTable, kTable + 0x10000, "[heap]"),
                made_up_mapping(kArena, kArena + arenas * kArenaBytes)};
  }
  void put_pool(std::uint64_t at, Pool pool) {
    pool.most_offset = static_cast<std::uint32_t>(kPoolBytes) - (pool.size_class + 1) * 16;
    memory.put_record(at, pool);
  }
  std::vector<PythonArena> find() const {
    return find_python_arenas(mappings, runtime, memory.queries());
  }

  MadeUpMemory memory;
  PythonRuntime runtime;
  std::vector<inject::Mapping> mappings;
};

TEST(PythonArenas, AreFoundThroughTheirTable) {
  const MadeUpArenas python(5);

  const std::vector<PythonArena> arenas = python.find();

  ASSERT_EQ(arenas.size(), 5U);
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    EXPECT_EQ(arenas[i].range.begin, kArena + i * kArenaBytes);
    EXPECT_EQ(arenas[i].range.end, kArena + (i + 1) * kArenaBytes);
    EXPECT_EQ(arenas[i].used_bytes, 10U * 512 + 100U * 64);
  }
}

TEST(PythonArenas, SkipThoseThatWereGivenBack) {
  MadeUpArenas python(4);
  python.memory.put_record(kTable + sizeof(Entry),
                           Entry{0, 0, 0, 0, 0, kTable + 6 * sizeof(Entry), 0});

  EXPECT_EQ(python.find().size(), 3U);
}

TEST(PythonArenas, AreNotBelievedWithoutTheirPools) {
  MadeUpArenas python(4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint64_t begin = kArena + i * kArenaBytes;
    python.put_pool(begin, {10, 0, 0, 0, i + 7, 31, 0, 0});  // of another arena
    python.put_pool(begin + kPoolBytes, {10, 0, 0, 0, i, 77, 0, 0});
  }

  EXPECT_TRUE(python.find().empty());
}

TEST(PythonArenas, CountNoMoreThanAPoolHolds) {
  MadeUpArenas python(1);
  python.put_pool(kArena, {0xffff'ffff, 0, 0, 0, 0, 31, 0, 0});

  ASSERT_EQ(python.find().size(), 1U);
  EXPECT_LE(python.find()[0].used_bytes, 2 * kPoolBytes);
}

TEST(PythonArenas, WithAPoolInSwapAreCountedWithoutIt) {
  MadeUpArenas python(1);
  python.memory.remove_page(kArena + kPoolBytes);

  ASSERT_EQ(python.find().size(), 1U);
  EXPECT_EQ(python.find()[0].used_bytes, 10U * 512);
}

TEST(PythonArenas, OfAFreeThreadedPythonAreNone) {
  MadeUpArenas python(3);
  python.runtime.layout.is_free_threaded = true;

  EXPECT_TRUE(python.find().empty());
}

}  // namespace
}  // namespace tidemark::heap
