// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/memory_account.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace tidemark::reader {
namespace {

constexpr char kSmaps[] =
    R"(55d0c000-55d0e000 r--p 00000000 fe:01 123  /usr/bin/python3.11
Size:                  8 kB
Rss:                   8 kB
Anonymous:             4 kB
Swap:                  0 kB
55d10000-55d90000 rw-p 00000000 00:00 0                                  [heap]
Rss:                 400 kB
Anonymous:           400 kB
Swap:                 12 kB
7f0000000000-7f0004000000 rw-p 00000000 00:00 0
Rss:                1024 kB
Anonymous:          1024 kB
VmFlags: rd wr mr mw me ac
7f1000000000-7f1000060000 rw-s 00000000 00:1b 77   /dev/shm/tidemark-0/trace-x/9-1.trace (deleted)
Rss:                 384 kB
Anonymous:             0 kB
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
Rss:                 132 kB
Anonymous:           132 kB
)";

TEST(MemoryAreas, AreReadWithWhatTheyAre) {
  const auto areas = parse_memory_areas(kSmaps);

  ASSERT_EQ(areas.size(), 5U);
  EXPECT_EQ(areas[0].kind, AreaKind::kOther);
  EXPECT_EQ(areas[0].anonymous_bytes, 4U << 10U);
  EXPECT_EQ(areas[1].kind, AreaKind::kHeap);
  EXPECT_EQ(areas[1].anonymous_bytes, 412U << 10U);  // what is swapped out is there as well
  EXPECT_EQ(areas[2].kind, AreaKind::kAnonymous);
  EXPECT_EQ(areas[2].begin, 0x7f00'0000'0000U);
  EXPECT_EQ(areas[2].end, 0x7f00'0400'0000U);
  EXPECT_EQ(areas[3].kind, AreaKind::kTrace);
  EXPECT_EQ(areas[3].resident_bytes, 384U << 10U);
  EXPECT_EQ(areas[4].kind, AreaKind::kStack);
}

TEST(MemoryAreas, LeavesOutWhatItDoesNotUnderstand) {
  EXPECT_TRUE(parse_memory_areas("").empty());
  EXPECT_TRUE(parse_memory_areas("Rss: 12 kB\nrubbish\n").empty());
  EXPECT_TRUE(parse_memory_areas("2000-1000 rw-p 0 0 0\n").empty());
  const auto cut = parse_memory_areas("1000-2000 rw-p\nRss: x kB\nAnonymous:");
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].anonymous_bytes, 0U);
}

TEST(MemoryAreas, OfThisProcessHoldABlockThatWasWritten) {
  constexpr std::size_t kBytes = 8U << 20U;
  const std::unique_ptr<char[]> block(new char[kBytes]);
  std::memset(block.get(), 1, kBytes);

  const auto areas = memory_areas_of(::getpid());

  ASSERT_TRUE(areas);
  std::uint64_t found = 0;
  for (const MemoryArea& area : *areas) {
    const auto address = reinterpret_cast<std::uint64_t>(block.get());
    if (address >= area.begin && address < area.end) {
      found = area.anonymous_bytes;
    }
  }
  EXPECT_GE(found, kBytes);
}

TEST(MemoryAreas, OfNobodyAreNotKnown) { EXPECT_FALSE(memory_areas_of(1, "/nonexistent")); }

}  // namespace
}  // namespace tidemark::reader
