// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "common/io.h"
#include "profiler/reader/trace_file.h"
#include "profiler/wire/sampling.h"
#include "tests/support/open_trace.h"
#include "tests/support/trace_builder.h"

namespace tidemark::reader {
namespace {

using tests::open_trace;
using tests::TraceBuilder;

LiveScan scan(TraceBuilder& builder, const LiveScanOptions& options = {}) {
  auto file = open_trace(builder.bytes());
  TIDEMARK_CHECK(file, "the trace of the test is not one");
  auto scan = file->live_blocks(options);
  TIDEMARK_CHECK(scan, "the live blocks cannot be read");
  return std::move(*scan);
}

TEST(LiveBlocks, AddsExactBlocksUpBySite) {
  TraceBuilder builder;
  const auto first = builder.add_site({});
  const auto second = builder.add_site({});
  builder.add_site({});  // has no live block
  builder.add_block(0x1000, 100, second);
  builder.add_block(0x2000, 50, first);
  builder.add_block(0x3000, 25, second);

  const LiveScan live = scan(builder);

  ASSERT_EQ(live.sites.size(), 2U);
  EXPECT_EQ(live.sites[0].site, first);
  EXPECT_EQ(live.sites[0].bytes, 50.0);
  EXPECT_EQ(live.sites[1].site, second);
  EXPECT_EQ(live.sites[1].blocks, 2.0);
  EXPECT_EQ(live.sites[1].bytes, 125.0);
  EXPECT_EQ(live.sites[1].bytes_variance, 0.0);
  EXPECT_EQ(live.sites[1].recorded_blocks, 2U);
  EXPECT_TRUE(live.blocks.empty());
  EXPECT_EQ(live.losses, ReadLosses{});
}

TEST(LiveBlocks, WeighsEachSampledBlockByItsOwnPeriod) {
  TraceBuilder builder;
  const auto site = builder.add_site({});
  const auto coarse = builder.add_period(1000);
  const auto fine = builder.add_period(10);
  builder.add_block(0x1000, 500, site, 0, coarse);
  builder.add_block(0x2000, 500, site, 0, fine);
  const double heavy = 1.0 / (1.0 - std::exp(-0.5));

  const LiveScan live = scan(builder);

  ASSERT_EQ(live.sites.size(), 1U);
  EXPECT_NEAR(live.sites[0].blocks, heavy + 1.0, 1e-9);
  EXPECT_NEAR(live.sites[0].bytes, 500.0 * heavy + 500.0, 1e-6);
  EXPECT_NEAR(live.sites[0].bytes_variance, heavy * (heavy - 1.0) * 500.0 * 500.0, 1e-3);
}

TEST(LiveBlocks, CountsMappingsAsBlocksOfWeightOne) {
  TraceBuilder builder;
  const auto site = builder.add_site({0, wire::SiteKind::kAnonymousMap});
  builder.add_range(0x7f0000000000, 8192, site, 2);
  builder.add_range(0, 0, site);
  builder.header().control.epoch = 3;

  const LiveScan live = scan(builder, {true, {}, 10});

  ASSERT_EQ(live.sites.size(), 1U);
  EXPECT_EQ(live.sites[0].blocks, 1.0);
  EXPECT_EQ(live.sites[0].bytes, 8192.0);
  EXPECT_EQ(live.sites[0].bytes_by_age[2], 8192.0);
  ASSERT_EQ(live.blocks.size(), 1U);
  EXPECT_EQ(live.blocks[0].address, 0x7f0000000000U);
}

TEST(LiveBlocks, ProfilesTheAgeOfASiteOverTheWholeRun) {
  TraceBuilder builder;
  const auto leak = builder.add_site({});
  const auto warm_up = builder.add_site({});
  for (std::uint32_t second = 0; second < 64; ++second) {
    builder.add_block(0x10000 + second * 64, 10, leak, second);
  }
  builder.add_block(0x90000, 500, warm_up, 1);
  builder.header().control.epoch = 63;

  const LiveScan live = scan(builder);

  ASSERT_EQ(live.ages.size(), 32U);
  EXPECT_EQ(live.ages[31], (AgeBucket{62, 63, false}));
  EXPECT_THAT(live.sites.at(0).bytes_by_age, testing::Each(20.0));
  EXPECT_EQ(live.sites.at(1).bytes_by_age[0], 500.0);
  EXPECT_EQ(live.sites.at(1).bytes_by_age[1], 0.0);
}

TEST(LiveBlocks, KeepsTheBlocksOfTheSitesAskedFor) {
  TraceBuilder builder;
  const auto first = builder.add_site({});
  const auto second = builder.add_site({});
  builder.add_block(0x1000, 1, first, 4);
  builder.add_block(0x2000, 2, second, wire::kEpochIsStep | 5);

  const LiveScan live = scan(builder, {false, {second, 4711}, 10});

  ASSERT_EQ(live.blocks.size(), 1U);
  EXPECT_EQ(live.blocks[0].address, 0x2000U);
  EXPECT_EQ(live.blocks[0].size_bytes, 2U);
  EXPECT_EQ(live.blocks[0].weight, 1.0);
  EXPECT_EQ(live.blocks[0].site, second);
  EXPECT_EQ(live.blocks[0].epoch, wire::kEpochIsStep | 5U);
}

TEST(LiveBlocks, SaysHowManyBlocksItDidNotKeep) {
  TraceBuilder builder;
  const auto site = builder.add_site({});
  for (std::uint64_t i = 1; i <= 5; ++i) {
    builder.add_block(i * 0x1000, 1, site);
  }

  const LiveScan live = scan(builder, {true, {}, 2});

  EXPECT_EQ(live.blocks.size(), 2U);
  EXPECT_EQ(live.blocks_not_kept, 3U);
  EXPECT_EQ(live.sites.at(0).bytes, 5.0);
}

TEST(LiveBlocks, LeavesOutWhatPointsNowhere) {
  TraceBuilder builder;
  const auto site = builder.add_site({});
  builder.add_block(0x1000, 1, site + 1);
  builder.add_block(0x2000, 1, site, 0, 1);  // a period that is not listed
  builder.add_block(0x3000, 1, site);
  builder.add_range(0xffff'ffff'ffff'f000, 0x2000, site);

  const LiveScan live = scan(builder);

  ASSERT_EQ(live.sites.size(), 1U);
  EXPECT_EQ(live.sites[0].bytes, 1.0);
  EXPECT_EQ(live.losses.damaged_items, 3U);
}

// Changes the file behind the reader's back, after its nth reading.
int g_file = -1;
int g_readings_left = 0;
std::string* g_after = nullptr;

ssize_t reading_that_races(int fd, void* buffer, std::size_t size, off_t offset) {
  const ssize_t got = ::pread(fd, buffer, size, offset);
  if (--g_readings_left == 0) {
    TIDEMARK_CHECK(::pwrite(g_file, g_after->data(), g_after->size(), 0) > 0, "cannot race");
  }
  return got;
}

TEST(LiveBlocks, SkipsSlotsThatChangeWhileTheyAreRead) {
  TraceBuilder builder;
  builder.set_live_buckets(1);
  const auto site = builder.add_site({});
  builder.add_block(0x1000, 1, site);
  builder.add_block(0x2000, 2, site);
  builder.add_block(0x3000, 4, site);
  builder.add_block(0x4000, 8, site);
  const Fd writer = tests::memory_file(builder.bytes());
  const auto file = TraceFile::adopt(Fd(::dup(writer.get())));
  ASSERT_TRUE(file);
  builder.bucket(0).address[0] = 0x5000;                                // another block
  builder.bucket(0).address[1] = wire::kEmptySlot;                      // freed
  builder.bucket(0).record[2].size_and_period = wire::pack_size(5, 0);  // moved within the slot
  std::string after = builder.bytes();
  g_file = writer.get();
  g_after = &after;
  g_readings_left = 3;  // the header, the epochs, then the first of two

  Syscalls table = replace_syscalls({});
  replace_syscalls(table);
  Syscalls racing = table;
  racing.pread = reading_that_races;
  replace_syscalls(racing);
  const auto live = file->live_blocks();
  replace_syscalls(table);

  ASSERT_TRUE(live);
  ASSERT_EQ(live->sites.size(), 1U);
  EXPECT_EQ(live->sites[0].bytes, 8.0);
  EXPECT_EQ(live->losses.torn_slots, 3U);
}

TEST(LiveBlocks, SkipsASlotThatIsBeingWritten) {
  TraceBuilder builder;
  builder.set_live_buckets(1);
  const auto site = builder.add_site({});
  builder.add_block(0x1000, 1, site);
  builder.bucket(0).address[0] = wire::kBusySlot;

  const LiveScan live = scan(builder);

  EXPECT_TRUE(live.sites.empty());
  EXPECT_EQ(live.losses.torn_slots, 1U);
}

TEST(LiveBlocks, HaveTheAgesOfTheSitesThatAreAskedFor) {
  TraceBuilder builder;
  const auto first = builder.add_site({builder.add_stack({0x10}), wire::SiteKind::kHeap, 100, 1});
  const auto second = builder.add_site({builder.add_stack({0x20}), wire::SiteKind::kHeap, 50, 1});
  builder.add_block(0x1000, 100, first);
  builder.add_block(0x2000, 50, second);
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file);
  LiveScanOptions options;
  options.with_ages = [&](std::uint32_t site) { return site == second; };

  const auto live = file->live_blocks(options);

  ASSERT_TRUE(live);
  ASSERT_EQ(live->sites.size(), 2U);
  EXPECT_TRUE(live->sites[0].bytes_by_age.empty());
  EXPECT_EQ(live->sites[0].bytes, 100.0);
  EXPECT_EQ(live->sites[1].bytes_by_age.size(), live->ages.size());
}

TEST(LiveBlocks, AddsUpTheSitesThatAreNotListed) {
  TraceBuilder builder;
  const auto listed = builder.add_site({});
  const auto second = builder.add_site({});
  const auto third = builder.add_site({});
  builder.add_block(0x1000, 100, listed);
  builder.add_block(0x2000, 20, second);
  builder.add_block(0x3000, 3, third);
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file);
  LiveScanOptions options;
  options.lists = [&](std::uint32_t site) { return site == listed; };

  const auto live = file->live_blocks(options);

  ASSERT_TRUE(live);
  ASSERT_EQ(live->sites.size(), 2U);
  EXPECT_EQ(live->sites[0].site, listed);
  EXPECT_EQ(live->sites[0].bytes, 100.0);
  EXPECT_EQ(live->sites[1].site, kOtherSites);
  EXPECT_EQ(live->sites[1].bytes, 23.0);
  EXPECT_EQ(live->sites[1].blocks, 2.0);
}

}  // namespace
}  // namespace tidemark::reader
