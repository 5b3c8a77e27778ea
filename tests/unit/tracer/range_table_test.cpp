// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/range_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/unit/tracer/store_folder.h"

namespace tidemark::tracer {
namespace {

constexpr std::uint64_t kPage = 4096;

// What the table said was released, by site.
struct Released {
  std::map<std::uint32_t, std::uint64_t> bytes;
  std::map<std::uint32_t, int> whole;
  std::vector<RangePiece> pieces;

  static void hear(void* context, const RangePiece& piece) {
    auto& self = *static_cast<Released*>(context);
    self.bytes[piece.site] += piece.bytes;
    self.whole[piece.site] += piece.last ? 1 : 0;
    self.pieces.push_back(piece);
  }
};

class RangeTableTest : public testing::Test {
 protected:
  bool map(std::uint64_t page, std::uint64_t pages, std::uint32_t site) {
    return table_.insert(page * kPage, pages * kPage, site, 0, Released::hear, &released_);
  }
  bool unmap(std::uint64_t page, std::uint64_t pages) {
    return table_.release(page * kPage, pages * kPage, Released::hear, &released_);
  }
  // Page to site, as the file lists them.
  std::map<std::uint64_t, std::uint32_t> listed() {
    std::map<std::uint64_t, std::uint32_t> pages;
    const auto used = folder_.store().header()->table[5].used.load();
    for (std::uint64_t i = 0; i < used; ++i) {
      const auto* const range = folder_.store().item<wire::MapRange>(wire::Table::kRanges, i);
      for (std::uint64_t at = 0; range != nullptr && at < range->bytes; at += kPage) {
        EXPECT_TRUE(pages.emplace((range->begin + at) / kPage, range->site).second);
      }
    }
    return pages;
  }
  std::set<std::uint64_t> pages() {
    std::set<std::uint64_t> result;
    for (const auto& [page, site] : listed()) {
      result.insert(page);
    }
    return result;
  }

  StoreFolder folder_;
  RangeTable table_{folder_.store()};
  Released released_;
};

TEST_F(RangeTableTest, CutsOffTheFront) {
  map(100, 10, 1);
  unmap(98, 5);

  EXPECT_EQ(pages(), (std::set<std::uint64_t>{103, 104, 105, 106, 107, 108, 109}));
  EXPECT_EQ(released_.bytes[1], 3 * kPage);
  EXPECT_EQ(released_.whole[1], 0);
}

TEST_F(RangeTableTest, CutsOffTheBack) {
  map(100, 10, 1);
  unmap(107, 100);

  EXPECT_EQ(pages(), (std::set<std::uint64_t>{100, 101, 102, 103, 104, 105, 106}));
  EXPECT_EQ(released_.bytes[1], 3 * kPage);
}

TEST_F(RangeTableTest, CutsOutTheMiddle) {
  map(100, 6, 1);
  unmap(102, 2);

  EXPECT_EQ(pages(), (std::set<std::uint64_t>{100, 101, 104, 105}));
  EXPECT_EQ(released_.bytes[1], 2 * kPage);
  EXPECT_EQ(released_.whole[1], 0);
}

TEST_F(RangeTableTest, TheLastPartOfARangeIsReleasedAsTheLast) {
  map(100, 6, 1);
  unmap(100, 3);
  unmap(103, 3);

  EXPECT_TRUE(pages().empty());
  EXPECT_EQ(released_.bytes[1], 6 * kPage);
  EXPECT_EQ(released_.whole[1], 1);
}

TEST_F(RangeTableTest, AMappingThatWasCutIsGoneOnceHoweverManyPartsItHad) {
  map(100, 9, 1);
  unmap(102, 1);
  unmap(105, 1);
  map(107, 1, 2);  // over a part of it
  EXPECT_EQ(released_.whole[1], 0);
  unmap(103, 2);
  unmap(90, 100);

  EXPECT_TRUE(pages().empty());
  EXPECT_EQ(released_.bytes[1], 9 * kPage);
  EXPECT_EQ(released_.whole[1], 1);
  EXPECT_EQ(released_.whole[2], 1);
}

TEST_F(RangeTableTest, WhatIsPutBackIsAsItWas) {
  map(100, 3, 1);
  map(103, 6, 2);
  unmap(101, 4);  // the end of one, the beginning of the other
  const std::vector<RangePiece> taken = released_.pieces;
  ASSERT_EQ(taken.size(), 2U);
  for (const RangePiece& piece : taken) {
    EXPECT_TRUE(table_.put_back(piece));
  }

  EXPECT_EQ(pages().size(), 9U);
  EXPECT_EQ(listed().at(102), 1U);
  EXPECT_EQ(listed().at(103), 2U);
  released_ = {};
  unmap(100, 2);
  EXPECT_EQ(released_.whole[1], 0);
  unmap(102, 7);
  EXPECT_EQ(released_.whole[1], 1);
  EXPECT_EQ(released_.whole[2], 1);
  EXPECT_EQ(released_.bytes[1], 3 * kPage);
  EXPECT_EQ(released_.bytes[2], 6 * kPage);
}

TEST_F(RangeTableTest, OneUnmapTakesSeveralRanges) {
  map(100, 2, 1);
  map(102, 2, 2);
  map(104, 2, 3);
  unmap(101, 4);

  EXPECT_EQ(pages(), (std::set<std::uint64_t>{100, 105}));
  EXPECT_EQ(released_.whole[2], 1);
}

TEST_F(RangeTableTest, AFixedMappingReplacesWhatWasThere) {
  map(100, 4, 1);
  map(101, 2, 2);

  const auto now = listed();
  EXPECT_EQ(now.at(100), 1U);
  EXPECT_EQ(now.at(101), 2U);
  EXPECT_EQ(now.at(102), 2U);
  EXPECT_EQ(now.at(103), 1U);
  EXPECT_EQ(released_.bytes[1], 2 * kPage);
}

TEST_F(RangeTableTest, FindsTheMappingThatHoldsAnAddress) {
  map(100, 4, 7);
  RangePiece found = {};

  EXPECT_TRUE(table_.find(102 * kPage + 5, found));
  EXPECT_EQ(found.site, 7U);
  EXPECT_EQ(found.begin, 100 * kPage);
  EXPECT_FALSE(table_.find(104 * kPage, found));
  EXPECT_FALSE(table_.find(99 * kPage, found));
}

TEST_F(RangeTableTest, AgreesWithAModelOfPages) {
  std::mt19937 random(7);
  std::map<std::uint64_t, std::uint32_t> oracle;
  std::uint64_t mapped = 0;

  for (std::uint32_t i = 1; i <= 2000; ++i) {
    const std::uint64_t page = random() % 200;
    const std::uint64_t pages = 1 + random() % 20;
    const bool adds = random() % 2 == 0;
    if (adds) {
      map(page, pages, i);
      mapped += pages;
    } else {
      unmap(page, pages);
    }
    for (std::uint64_t n = page; n < page + pages; ++n) {
      oracle.erase(n);
      if (adds) {
        oracle[n] = i;
      }
    }
    ASSERT_EQ(listed(), oracle) << "after " << i << " calls";
  }

  std::uint64_t released = 0;
  for (const auto& [site, bytes] : released_.bytes) {
    released += bytes / kPage;
  }
  EXPECT_EQ(mapped - released, oracle.size());
}

TEST_F(RangeTableTest, ThreadsExcludeEachOther) {
  std::atomic<std::size_t> there = 0;  // a thread that waits too long is told so
  std::vector<std::thread> threads;
  for (std::uint64_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 300; ++i) {
        Released mine;
        const std::uint64_t at = (t * 1000 + i) * kPage;
        if (!table_.insert(at, kPage, static_cast<std::uint32_t>(t), 0, Released::hear, &mine)) {
          continue;
        }
        ++there;
        if (i % 2 == 0 && table_.release(at, kPage, Released::hear, &mine)) {
          --there;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  EXPECT_EQ(pages().size(), there);
  EXPECT_GT(there, 500U);
}

TEST(RangeTable, StaysInItsBoundsWhenTheFileCannotGrow) {
  StoreFolder folder(100U << 10U);
  RangeTable table(folder.store());
  Released released;
  std::uint64_t held = 0;

  for (std::uint64_t i = 0; i < 5000; ++i) {
    held += table.insert(i * 2 * kPage, kPage, 1, 0, Released::hear, &released) ? 1U : 0U;
  }

  EXPECT_GE(held, first_items(wire::Table::kRanges));
  EXPECT_LT(held, 5000U);
  EXPECT_TRUE(table.release(0, 10000 * kPage, Released::hear, &released));
  EXPECT_EQ(released.bytes[1], held * kPage);
}

TEST(RangeTable, FillsUpWhenTheFileCanGrowAgain) {
  StoreFolder folder(100U << 10U);
  RangeTable table(folder.store());
  Released released;
  const auto insert = [&](std::uint64_t i) {
    return table.insert(i * 2 * kPage, kPage, 1, 0, Released::hear, &released);
  };
  std::uint64_t held = 0;
  for (std::uint64_t i = 0; i < 50'000; ++i) {  // more than there may ever be
    held += insert(i) ? 1U : 0U;
  }

  folder.store().header()->control.most_file_bytes = 0;
  for (int i = 0; i < 1000 && !insert(50'000); ++i) {
    ::usleep(10'000);  // it does not ask again at once
  }

  EXPECT_EQ(folder.store().used(wire::Table::kRanges), held + 1);
  EXPECT_TRUE(insert(50'001));
}

}  // namespace
}  // namespace tidemark::tracer
