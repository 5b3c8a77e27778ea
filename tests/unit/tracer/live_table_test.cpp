// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/live_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/unit/tracer/store_folder.h"

namespace tidemark::tracer {
namespace {

using wire::LiveRecord;

LiveRecord record_of(std::uint64_t size, std::uint32_t site = 1) {
  return {wire::pack_size(size, 0), site, 0};
}

TEST(LiveTable, ReturnsWhatWasInserted) {
  StoreFolder folder;
  LiveTable table(folder.store());
  LiveRecord replaced = {};
  LiveRecord taken = {};

  EXPECT_EQ(table.insert(0x1000, {wire::pack_size(77, 3), 5, 9}, replaced), Inserted::kNew);

  ASSERT_TRUE(table.remove(0x1000, taken));
  EXPECT_EQ(wire::unpack_size(taken.size_and_period), 77U);
  EXPECT_EQ(wire::unpack_period(taken.size_and_period), 3U);
  EXPECT_EQ(taken.site, 5U);
  EXPECT_EQ(taken.epoch, 9U);
  EXPECT_FALSE(table.remove(0x1000, taken));
}

TEST(LiveTable, ReturnsWhatItReplaces) {
  StoreFolder folder;
  LiveTable table(folder.store());
  LiveRecord replaced = {};
  table.insert(0x2000, record_of(10, 1), replaced);

  EXPECT_EQ(table.insert(0x2000, record_of(20, 2), replaced), Inserted::kReplaced);

  EXPECT_EQ(replaced.site, 1U);
  LiveRecord taken = {};
  ASSERT_TRUE(table.remove(0x2000, taken));
  EXPECT_EQ(taken.site, 2U);
  EXPECT_FALSE(table.remove(0x2000, taken));
}

TEST(LiveTable, GrowsByLevelsAndFindsBlocksOfAllOfThem) {
  StoreFolder folder;
  LiveTable table(folder.store());
  LiveRecord ignored = {};
  constexpr std::uint64_t kBlocks = 50'000;

  for (std::uint64_t i = 1; i <= kBlocks; ++i) {
    ASSERT_EQ(table.insert(i * 32, record_of(i), ignored), Inserted::kNew);
  }

  EXPECT_GT(folder.store().extents(wire::Table::kLive), 3U);
  for (std::uint64_t i = 1; i <= kBlocks; ++i) {
    LiveRecord taken = {};
    ASSERT_TRUE(table.remove(i * 32, taken));
    ASSERT_EQ(wire::unpack_size(taken.size_and_period), i);
  }
  LiveRecord taken = {};
  EXPECT_FALSE(table.remove(32, taken));
}

TEST(LiveTable, KeepsWorkingAfterManyInsertsAndRemoves) {
  StoreFolder folder;
  LiveTable table(folder.store());
  LiveRecord ignored = {};
  for (std::uint64_t i = 0; i < 500; ++i) {
    table.insert(0x10000 + i * 16, record_of(i), ignored);
  }
  const std::size_t levels = folder.store().extents(wire::Table::kLive);

  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const std::uint64_t old = 0x10000 + i * 16;
    ASSERT_TRUE(table.remove(old, ignored));
    ASSERT_EQ(table.insert(old + std::uint64_t{500} * 16, record_of(1), ignored), Inserted::kNew);
  }

  EXPECT_EQ(folder.store().extents(wire::Table::kLive), levels);
}

std::uint64_t buckets_in_use(TraceStore& store) {
  std::uint64_t used = 0;
  for (std::size_t level = 0; level < store.extents(wire::Table::kLive); ++level) {
    const auto* const bucket = store.extent<wire::LiveBucket>(wire::Table::kLive, level);
    for (std::uint64_t i = 0; i < first_items(wire::Table::kLive) << level; ++i) {
      used += std::any_of(std::begin(bucket[i].address), std::end(bucket[i].address),
                          [](const auto& address) { return address != wire::kEmptySlot; })
                  ? 1U
                  : 0U;
    }
  }
  return used;
}

TEST(LiveTable, NeighboursShareABucket) {
  StoreFolder folder;
  LiveTable table(folder.store());
  LiveRecord ignored = {};

  for (std::uint64_t i = 0; i < 64; ++i) {
    table.insert(0x7000'0000'1000 + i * 64, record_of(1), ignored);
  }

  EXPECT_LE(buckets_in_use(folder.store()), 16U) << "some 50, if they lay anywhere";
}

std::uint64_t slots_of(std::size_t levels) {
  return wire::kSlotsPerBucket * first_items(wire::Table::kLive) * ((1U << levels) - 1);
}

// Of 24 bytes a slot: at most 80 bytes a block just after it has grown, half of that before.
TEST(LiveTable, IsMostlyFullWhenItGrowsWhereverBlocksLie) {
  for (const std::uint64_t spacing : {8U, 16U, 32U, 48U, 64U, 256U, 1008U, 4096U, 1U << 20U}) {
    StoreFolder folder;
    LiveTable table(folder.store());
    LiveRecord ignored = {};
    std::size_t levels = 1;

    for (std::uint64_t i = 1; i <= 100'000; ++i) {
      ASSERT_EQ(table.insert(0x7000'0000'0000 + i * spacing, record_of(1), ignored),
                Inserted::kNew);
      const std::size_t now = folder.store().extents(wire::Table::kLive);
      if (now > levels && i > 5'000) {
        EXPECT_LE(24 * slots_of(now), 80 * i) << spacing << " bytes apart, level " << now;
      }
      levels = now;
    }
  }
}

// Blocks that come and go by pages, as a heap does it, and by chance.
TEST(LiveTable, DoesNotGrowWithTimeWhereTheSameNumberLives) {
  constexpr std::uint64_t kPage = 4096;
  constexpr std::uint64_t kPerPage = kPage / 64;
  constexpr std::uint64_t kPages = 100;
  StoreFolder folder;
  LiveTable table(folder.store());
  LiveRecord ignored = {};
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> pages;
  const auto fill = [&](std::uint64_t& page) {
    page = random() % (1U << 28U) * kPage;
    for (std::uint64_t i = 0; i < kPerPage; ++i) {
      table.insert(page + i * 64, record_of(1), ignored);
    }
  };
  for (std::uint64_t i = 0; i < kPages; ++i) {
    fill(pages.emplace_back());
  }

  for (std::uint64_t turn = 0; turn < 30'000; ++turn) {
    std::uint64_t& page = pages[random() % kPages];
    for (std::uint64_t i = 0; i < kPerPage; ++i) {
      ASSERT_TRUE(table.remove(page + i * 64, ignored));
    }
    fill(page);
  }

  const std::size_t levels = folder.store().extents(wire::Table::kLive);
  EXPECT_LE(24 * slots_of(levels), 80 * kPages * kPerPage) << levels << " levels";
}

TEST(LiveTable, SaysWhenThereIsNoRoom) {
  StoreFolder folder(128U << 10U);
  LiveTable table(folder.store());
  LiveRecord ignored = {};
  std::uint64_t held = 0;

  for (std::uint64_t i = 1; i <= 20'000; ++i) {
    held += table.insert(i * 16, record_of(1), ignored) == Inserted::kNew ? 1U : 0U;
  }

  EXPECT_GT(held, 512U);  // more than half of the first level
  EXPECT_LT(held, 20'000U);
  std::uint64_t found = 0;
  for (std::uint64_t i = 1; i <= 20'000; ++i) {
    found += table.remove(i * 16, ignored) ? 1U : 0U;
  }
  EXPECT_EQ(found, held);
  EXPECT_EQ(table.insert(16, record_of(1), ignored), Inserted::kNew);
}

// As the hooks do it: an address belongs to one thread at a time, and goes to another through
// something that orders them.
TEST(LiveTable, IsCorrectWithEightThreads) {
  StoreFolder folder;
  LiveTable table(folder.store());
  constexpr std::size_t kThreads = 8;
  constexpr std::uint64_t kShared = 256;
  std::vector<std::atomic<std::uint64_t>> hand_over(kShared);
  std::atomic<std::uint64_t> wrong = 0;
  std::atomic<std::uint64_t> next_address = 0x100000;

  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::unordered_map<std::uint64_t, std::uint64_t> mine;
    for (int i = 0; i < 20'000; ++i) {
      const auto choice = random() % 8;
      if (choice < 3) {
        const std::uint64_t address = next_address.fetch_add(16);
        const std::uint64_t size = random() % 100'000;
        LiveRecord replaced = {};
        wrong += table.insert(address, record_of(size), replaced) == Inserted::kNew ? 0U : 1U;
        mine[address] = size;
      } else if (choice < 6 && !mine.empty()) {
        const auto [address, size] = *mine.begin();
        LiveRecord taken = {};
        const bool found = table.remove(address, taken);
        wrong += found && wire::unpack_size(taken.size_and_period) == size ? 0 : 1;
        mine.erase(address);
      } else {
        // Threads exchange blocks: the one in the slot is taken, one of ours is put there.
        const std::uint64_t put = mine.empty() ? 0 : mine.begin()->first;
        mine.erase(put);
        const std::uint64_t got = hand_over[random() % kShared].exchange(put);
        LiveRecord taken = {};
        if (got != 0) {
          wrong += table.remove(got, taken) ? 0 : 1;
        }
      }
    }
    for (const auto& [address, size] : mine) {
      LiveRecord taken = {};
      wrong += table.remove(address, taken) ? 0 : 1;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back(work, i + 1);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const auto& left : hand_over) {
    LiveRecord taken = {};
    wrong += left == 0 || table.remove(left, taken) ? 0 : 1;
  }

  EXPECT_EQ(wrong, 0U);
  for (std::size_t level = 0; level < folder.store().extents(wire::Table::kLive); ++level) {
    const auto* const buckets = folder.store().extent<wire::LiveBucket>(wire::Table::kLive, level);
    for (std::uint64_t b = 0; b < first_items(wire::Table::kLive) << level; ++b) {
      for (const auto& address : buckets[b].address) {
        ASSERT_EQ(address.load(), wire::kEmptySlot);
      }
    }
  }
}

}  // namespace
}  // namespace tidemark::tracer
