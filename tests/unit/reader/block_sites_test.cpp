// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/block_sites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "monitor/procfs/process_handle.h"
#include "tests/support/fake_trace_world.h"
#include "tests/support/temp_tree.h"
#include "tests/support/trace_builder.h"

namespace tidemark::reader {
namespace {

using tests::TraceBuilder;

constexpr std::uint64_t kKiB = 1024;

// A trace file of the test's own process, in a folder of traces.
class BlockSitesTest : public testing::Test {
 protected:
  BlockSitesTest() {
    key_ = *monitor::process_key_of("/proc", ::getpid());
    builder_.header().pid = static_cast<std::uint32_t>(key_.pid);
    builder_.header().start_ticks = key_.start_ticks;
    builder_.header().pid_namespace = 0;
    dir_.make_directory("run");
    ::chmod(dir_.path().c_str(), 0700);
  }

  std::uint32_t add_site(std::initializer_list<std::uint64_t> stack, std::uint64_t live_bytes,
                         wire::SiteKind kind = wire::SiteKind::kHeap) {
    return builder_.add_site({builder_.add_stack(stack), kind, live_bytes, 1});
  }
  std::vector<std::vector<OwnerSite>> find(std::vector<std::vector<std::uint64_t>> groups) {
    dir_.write("run/4711-1.trace", builder_.bytes());
    return blocks_.find(key_, groups);
  }

  tests::TempTree dir_;
  TraceBuilder builder_;
  ProcessKey key_;
  BlockSites blocks_{std::make_unique<tests::FakeTraceWorld>(), {dir_.path()}};
};

TEST_F(BlockSitesTest, AddsUpTheBlocksOfEachGroupByStack) {
  const auto cache = add_site({0x10, 0x1}, 40 * kKiB);
  const auto again = add_site({0x10, 0x1}, 20 * kKiB);  // the same stack
  const auto other = add_site({0x20, 0x1}, 70 * kKiB);
  builder_.add_block(0x10000, 10 * kKiB, cache);
  builder_.add_block(0x20000, 30 * kKiB, cache);
  builder_.add_block(0x30000, 20 * kKiB, again);
  builder_.add_block(0x40000, 70 * kKiB, other);

  // An address that is given twice counts once, and one inside a block for none.
  const auto found =
      find({{0x10000, 0x30000, 0x10000, 0x20010}, {0x20000, 0x40000, 0x99000}, {0x50000}});

  ASSERT_EQ(found.size(), 3U);
  ASSERT_EQ(found[0].size(), 1U);
  EXPECT_EQ(found[0][0].bytes, 30 * kKiB);
  ASSERT_EQ(found[1].size(), 2U);
  EXPECT_EQ(found[1][0].bytes, 70 * kKiB);
  EXPECT_EQ(found[1][1].bytes, 30 * kKiB);
  EXPECT_EQ(found[1][1].site, found[0][0].site);
  EXPECT_TRUE(found[2].empty());
  const AllocationFacts facts = blocks_.take_facts();
  ASSERT_EQ(facts.sites.size(), 2U);
  EXPECT_EQ(facts.sites[0].site, found[0][0].site);
  EXPECT_EQ(facts.sites[0].key, key_);
  const std::uint32_t innermost = facts.sites[0].frames.at(0);
  EXPECT_GT(innermost, BlockSites::kNumberBefore);
  EXPECT_EQ(facts.frames.at(innermost - BlockSites::kNumberBefore - 1).function, "f10");
}

TEST_F(BlockSitesTest, NamesAStackOnce) {
  builder_.add_block(0x10000, 10 * kKiB, add_site({0x10, 0x1}, 10 * kKiB));
  const auto first = find({{0x10000}});
  blocks_.take_facts();

  const auto second = find({{0x10000}});

  EXPECT_EQ(second[0][0].site, first[0][0].site);
  EXPECT_TRUE(blocks_.take_facts().empty());
}

TEST_F(BlockSitesTest, CountsWhatSampledBlocksStandFor) {
  const auto period = builder_.add_period(512 * kKiB);
  builder_.add_block(0x10000, 512 * kKiB, add_site({0x10}, 810 * kKiB), 0, period);

  const auto found = find({{0x10000}});

  ASSERT_EQ(found[0].size(), 1U);
  const double weighed = 512.0 * kKiB / (1.0 - std::exp(-1.0));
  EXPECT_NEAR(static_cast<double>(found[0][0].bytes), weighed, 1.0);
}

TEST_F(BlockSitesTest, GivesTheLargestStacks) {
  std::vector<std::uint64_t> addresses;
  for (std::uint64_t i = 1; i <= BlockSites::kMostSites + 2; ++i) {
    addresses.push_back(i << 16U);
    builder_.add_block(i << 16U, i * kKiB, add_site({0x10 * i}, i * kKiB));
  }

  const auto found = find({addresses});

  ASSERT_EQ(found[0].size(), BlockSites::kMostSites);
  EXPECT_EQ(found[0].front().bytes, (BlockSites::kMostSites + 2) * kKiB);
  EXPECT_EQ(blocks_.take_facts().sites.size(), BlockSites::kMostSites);
}

TEST_F(BlockSitesTest, SaysNothingWhereNothingIsTraced) {
  EXPECT_FALSE(blocks_.is_traced(key_));
  builder_.add_block(0x10000, kKiB, add_site({0x10}, kKiB));
  EXPECT_EQ(find({{0x10000}})[0].size(), 1U);
  EXPECT_TRUE(blocks_.is_traced(key_));

  EXPECT_FALSE(blocks_.is_traced({key_.pid, key_.start_ticks + 1}));
  // It rests: what it has recorded may be gone.
  builder_.header().control.mode = static_cast<std::uint32_t>(wire::Mode::kDormant);
  EXPECT_TRUE(find({{0x10000}})[0].empty());
}

// Another program of the process: the last one is what is there.
TEST_F(BlockSitesTest, TakesTheLastFileOfAProcess) {
  TraceBuilder before;
  before.header().pid = builder_.header().pid;
  before.header().start_ticks = key_.start_ticks;
  before.header().pid_namespace = 0;
  before.header().created_ns = 1;
  before.add_block(0x10000, 5 * kKiB, before.add_site({before.add_stack({0x50})}));
  for (const char* name : {"run/1-0.trace", "run/9-0.trace"}) {
    dir_.write(name, before.bytes());
  }
  builder_.add_block(0x10000, kKiB, add_site({0x10}, kKiB));

  EXPECT_EQ(find({{0x10000}})[0].at(0).bytes, kKiB);
}

}  // namespace
}  // namespace tidemark::reader
