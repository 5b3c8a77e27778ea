// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/residency.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "tests/support/temp_tree.h"

namespace tidemark::reader {
namespace {

using tests::TempTree;

constexpr std::uint64_t kPresent = std::uint64_t{1} << 63U;
constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62U;
const auto kPage = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));

// A process 7 whose first pages are as told.
class FakePagemap {
 public:
  explicit FakePagemap(const std::vector<std::uint64_t>& entries) {
    tree_.write("7/pagemap", std::string_view(reinterpret_cast<const char*>(entries.data()),
                                              entries.size() * sizeof entries[0]));
  }

  std::optional<Residency> ask(const std::vector<MemoryRange>& ranges,
                               std::uint64_t most_pages = 1000) const {
    return residency_of(7, ranges, {tree_.path(), most_pages});
  }

 private:
  TempTree tree_;
};

TEST(Residency, IsTheShareOfTheBytesInPagesThatAreThere) {
  const FakePagemap pagemap({0, kPresent, kPresent, 0, kSwapped});

  const auto found = pagemap.ask({{kPage, 4 * kPage, 1.0}});

  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->resident_share, 0.5);
  EXPECT_DOUBLE_EQ(found->swapped_share, 0.25);
  EXPECT_EQ(found->pages, 4U);
  EXPECT_EQ(found->pages_looked_at, 4U);
}

TEST(Residency, CountsTheBytesOfABlockThatLieInEachPage) {
  const FakePagemap pagemap({0, kPresent, 0});

  const auto found = pagemap.ask({{2 * kPage - 30, 100, 1.0}});

  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->resident_share, 0.3);
}

TEST(Residency, WeighsSampledBlocks) {
  const FakePagemap pagemap({0, kPresent, 0});

  const auto found = pagemap.ask({{kPage, 16, 3.0}, {2 * kPage, 16, 1.0}});

  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->resident_share, 0.75);
}

TEST(Residency, WhatLiesBehindTheMapIsNotThere) {
  const FakePagemap pagemap({kPresent});

  const auto found = pagemap.ask({{0, kPage, 1.0}, {5000 * kPage, 3 * kPage, 1.0}});

  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->resident_share, 0.25);
}

TEST(Residency, LooksAtEvenlySpacedPagesWhenThereAreTooMany) {
  std::vector<std::uint64_t> entries(3000, kPresent);
  std::fill(entries.begin() + 1500, entries.end(), 0);
  const FakePagemap pagemap(entries);

  const auto found = pagemap.ask({{0, 2999 * kPage, 1.0}, {2999 * kPage, kPage, 1.0}}, 300);

  ASSERT_TRUE(found);
  EXPECT_EQ(found->pages, 3000U);
  EXPECT_EQ(found->pages_looked_at, 300U);
  EXPECT_DOUBLE_EQ(found->resident_share, 0.5);
}

TEST(Residency, SamplesManySmallBlocksAsOneSequence) {
  const FakePagemap pagemap(std::vector<std::uint64_t>(200, kPresent));
  std::vector<MemoryRange> ranges;
  for (std::uint64_t i = 0; i < 100; ++i) {
    ranges.push_back({2 * i * kPage, 16, 1.0});
  }

  const auto found = pagemap.ask(ranges, 10);

  ASSERT_TRUE(found);
  EXPECT_EQ(found->pages_looked_at, 10U);
  EXPECT_DOUBLE_EQ(found->resident_share, 1.0);
}

TEST(Residency, IsUnknownWithoutAPagemapOrWithoutBytes) {
  const FakePagemap pagemap({kPresent});
  const std::vector<MemoryRange> some = {{0, 1, 1.0}};
  TempTree empty;

  EXPECT_FALSE(residency_of(7, some, {empty.path(), 10}));
  EXPECT_FALSE(pagemap.ask({}));
  EXPECT_FALSE(pagemap.ask({{0, 0, 1.0}}));
  EXPECT_FALSE(pagemap.ask({{~std::uint64_t{0} - 10, 100, 1.0}}));
}

TEST(Residency, LeavesOutWhatNoAddressSpaceHolds) {
  const FakePagemap pagemap({kPresent});
  const std::vector<MemoryRange> all(4096, {0, ~std::uint64_t{0}, 1.0});  // 2^64 pages in all
  std::vector<MemoryRange> one_is_real = all;
  one_is_real.push_back({0, kPage, 1.0});

  EXPECT_FALSE(pagemap.ask(all));
  const auto found = pagemap.ask(one_is_real);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->pages, 1U);
  EXPECT_DOUBLE_EQ(found->resident_share, 1.0);
}

TEST(Residency, LooksAtNoMorePagesThanAskedHoweverLargeTheRanges) {
  const FakePagemap pagemap({kPresent});
  const std::uint64_t half = std::uint64_t{1} << 55U;

  const auto found = pagemap.ask(std::vector<MemoryRange>(1U << 16U, {half, half, 1.0}), 100);

  ASSERT_TRUE(found);
  EXPECT_LE(found->pages_looked_at, 100U);
  EXPECT_DOUBLE_EQ(found->resident_share, 0.0);
}

// Each takes a system call.
TEST(Residency, LooksAtFewPagesWhereTheyLieFarApart) {
  const FakePagemap pagemap({kPresent});

  const auto found = pagemap.ask({{0, std::uint64_t{1} << 55U, 1.0}}, std::uint64_t{1} << 20U);

  ASSERT_TRUE(found);
  EXPECT_LE(found->pages_looked_at, std::uint64_t{1} << 14U);
}

TEST(Residency, SeesWhichPagesOfThisProcessWereTouched) {
  const std::size_t bytes = 64 * kPage;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::madvise(memory, bytes, MADV_NOHUGEPAGE), 0);
  std::memset(memory, 1, 16 * kPage);
  const MemoryRange range{reinterpret_cast<std::uint64_t>(memory), bytes, 1.0};

  const auto found = residency_of(::getpid(), {&range, 1});

  ::munmap(memory, bytes);
  if (!found) {
    GTEST_SKIP() << "this kernel does not show /proc/self/pagemap";
  }
  EXPECT_DOUBLE_EQ(found->resident_share + found->swapped_share, 0.25);
}

}  // namespace
}  // namespace tidemark::reader
