// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "tests/unit/reader/collector_fixture.h"

namespace tidemark::reader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tests::TraceBuilder;

TEST_F(CollectorTest, TellsTheSitesOfANewProcess) {
  TraceBuilder builder;
  add_site(builder, 0x1010, 5'000);
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  ASSERT_EQ(facts.sites.size(), 1U);
  EXPECT_EQ(facts.sites[0].key, (ProcessKey{100, 5'000}));
  EXPECT_THAT(facts.sites[0].frames, ElementsAre(1U, 2U));
  ASSERT_EQ(facts.frames.size(), 2U);
  EXPECT_EQ(facts.frames[0].function, "f1010");
  ASSERT_EQ(facts.modules.size(), 1U);
  ASSERT_EQ(facts.samples.size(), 1U);
  EXPECT_EQ(facts.samples[0].live_bytes, 5'000U);
  ASSERT_EQ(facts.traces.size(), 1U);
  EXPECT_EQ(facts.traces[0].live_bytes, 5'000U);
  EXPECT_EQ(facts.traces[0].rest_bytes, 0U);
  EXPECT_FALSE(facts.traces[0].has_ended);
}

// Half a million sites of a Python program have freed all that they allocated.
TEST_F(CollectorTest, KeepsNoListOfSitesThatHoldNothing) {
  TraceBuilder builder;
  const auto held = add_site(builder, 0x1010, 5'000);
  const auto freed = add_site(builder, 0x1020, 700);
  builder.site(freed).free_bytes = 700;
  builder.site(freed).free_block_units = wire::kBlockUnit;
  write("100.trace", builder);
  auto file = TraceFile::open(dir_.path("run/100.trace"));
  ASSERT_TRUE(file);
  TracedFile traced("100.trace", {100, 5'000}, *std::move(file));

  ASSERT_TRUE(traced.read());
  ASSERT_EQ(traced.last().sites.size(), 1U);
  EXPECT_EQ(traced.last().sites[0].index, held);
  EXPECT_EQ(traced.summary(0.0).sites, 2U);
  EXPECT_EQ(traced.summary(0.0).freed_blocks, 1U);

  // A site that is followed is told of when it holds nothing any more.
  traced.state(traced.last().sites[0]).number = 1;
  builder.site(held).free_bytes = 5'000;
  write("100.trace", builder);
  ASSERT_TRUE(traced.read());
  ASSERT_EQ(traced.last().sites.size(), 1U);
  EXPECT_EQ(traced.last().sites[0].live_bytes(), 0U);
}

TEST_F(CollectorTest, AddsUpSitesThatHoldNextToNothing) {
  TraceBuilder builder;
  add_site(builder, 0x1010, 100'000'000);
  const auto small = add_site(builder, 0x1020, 1'000);
  builder.add_site({builder.add_stack({0x1030}), wire::SiteKind::kAnonymousMap, 1'000, 1});
  write("100.trace", builder);
  auto file = TraceFile::open(dir_.path("run/100.trace"));
  ASSERT_TRUE(file);
  TracedFile traced("100.trace", {100, 5'000}, *std::move(file));

  ASSERT_TRUE(traced.read());

  EXPECT_EQ(traced.last().sites.size(), 2U);  // a mapping is listed, whatever its size
  TraceSample sum = traced.summary(0.0);
  EXPECT_EQ(sum.live_bytes, 100'002'000U);
  EXPECT_EQ(sum.live_blocks, 3U);

  builder.site(small).alloc_bytes = 2'000;  // more than a part in 80,000
  write("100.trace", builder);
  ASSERT_TRUE(traced.read());

  EXPECT_EQ(traced.last().sites.size(), 3U);
  EXPECT_EQ(traced.summary(0.0).live_bytes, 100'003'000U);
}

TEST_F(CollectorTest, MeasuresWhatIsLittleByTheWholeRun) {
  TraceBuilder builder;
  add_site(builder, 0x1010, 1'000'000);
  add_site(builder, 0x1020, 1'000);
  write("100.trace", builder);
  auto file = TraceFile::open(dir_.path("run/100.trace"));
  ASSERT_TRUE(file);
  TracedFile traced("100.trace", {100, 5'000}, *std::move(file));
  ASSERT_TRUE(traced.read());
  EXPECT_EQ(traced.last().sites.size(), 2U);

  ASSERT_TRUE(traced.read(100'000'000));

  EXPECT_EQ(traced.last().sites.size(), 1U);
  EXPECT_EQ(traced.live_bytes(), 1'001'000U);
}

TEST_F(CollectorTest, ForgetsStacksThatCameAndWent) {
  constexpr std::uint32_t kSites = 1'000;
  TraceBuilder builder;
  for (std::uint32_t i = 0; i < kSites; ++i) {
    add_site(builder, 0x1000 + i, 100);
  }
  write("100.trace", builder);
  auto file = TraceFile::open(dir_.path("run/100.trace"));
  ASSERT_TRUE(file);
  TracedFile traced("100.trace", {100, 5'000}, *std::move(file));
  ASSERT_TRUE(traced.read());
  const std::uint32_t number = 7;
  traced.state(traced.last().sites[0]).number = number;

  for (std::uint32_t pass = 2; pass < 20; ++pass) {
    for (std::uint32_t i = 1; i < kSites; ++i) {
      builder.site(i).ready = pass;
      builder.node(builder.site(i).node).value = 0x1000 + pass * kSites + i;
    }
    write("100.trace", builder);
    ASSERT_TRUE(traced.read());
  }

  EXPECT_EQ(traced.last().sites.size(), kSites);
  EXPECT_LT(traced.known_stacks(), 12 * kSites);
  EXPECT_EQ(traced.state(traced.last().sites[0]).number, number);
}

// The stack of a site that has freed all gives way to another one, and comes again elsewhere.
TEST_F(CollectorTest, FollowsAStackThroughTheSitesThatItHas) {
  TraceBuilder builder;
  const auto node = builder.add_stack({0x1010, 0x1});
  const auto other = builder.add_stack({0x1020, 0x1});
  const auto first = builder.add_site({node, wire::SiteKind::kHeap, 5'000, 5});
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);
  AllocationFacts facts;
  collector.collect(facts);
  ASSERT_EQ(facts.samples.size(), 1U);
  const std::uint32_t number = facts.samples[0].site;
  builder.site(first).node = other;
  builder.site(first).ready = 2;
  builder.site(first).alloc_bytes = 300;
  write("100.trace", builder);

  AllocationFacts recycled;
  collector.collect(recycled);

  ASSERT_EQ(recycled.samples.size(), 2U);
  EXPECT_NE(recycled.samples[0].site, number);
  EXPECT_EQ(recycled.samples[0].live_bytes, 300U);
  EXPECT_EQ(recycled.samples[1].site, number);
  EXPECT_EQ(recycled.samples[1].live_bytes, 0U);
  EXPECT_EQ(recycled.samples[1].alloc_bytes, 5'000U);

  builder.add_site({node, wire::SiteKind::kHeap, 700, 1});
  write("100.trace", builder);
  AllocationFacts again;
  collector.collect(again);

  EXPECT_THAT(again.sites, IsEmpty());
  ASSERT_EQ(again.samples.size(), 1U);
  EXPECT_EQ(again.samples[0].site, number);
  EXPECT_EQ(again.samples[0].live_bytes, 700U);
  EXPECT_EQ(again.samples[0].alloc_bytes, 5'000U);  // never less than before
}

TEST_F(CollectorTest, TellsOnlyWhatHasChanged) {
  TraceBuilder builder;
  add_site(builder, 0x1010, 5'000);
  const auto grows = add_site(builder, 0x1020, 10);
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);
  AllocationFacts first;
  collector.collect(first);
  builder.site(grows).alloc_bytes += 90;
  write("100.trace", builder);

  AllocationFacts second;
  collector.collect(second);

  EXPECT_THAT(second.sites, IsEmpty());
  EXPECT_THAT(second.frames, IsEmpty());
  ASSERT_EQ(second.samples.size(), 1U);
  EXPECT_EQ(second.samples[0].live_bytes, 100U);
  EXPECT_EQ(second.traces[0].live_bytes, 5'100U);
}

TEST_F(CollectorTest, ReadsTheRestOfAProcessThatHasDiedAndRemovesItsFile) {
  TraceBuilder builder;
  add_site(builder, 0x1010, 5'000);
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);
  world_.dead.insert(100);

  AllocationFacts facts;
  collector.collect(facts);

  EXPECT_TRUE(facts.traces.at(0).has_ended);
  EXPECT_EQ(facts.samples.at(0).live_bytes, 5'000U);
  EXPECT_EQ(collector.open_files(), 0U);
  EXPECT_FALSE(exists("100.trace"));
}

TEST_F(CollectorTest, NamesAFileThatIsNoTraceOnce) {
  dir_.write("run/bad\x1b.trace", "rubbish");
  TraceBuilder builder;
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);
  const auto problems = collector.take_problems();
  collector.collect(facts);

  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0], HasSubstr("bad\\x1b.trace is not used"));
  EXPECT_THAT(collector.take_problems(), IsEmpty());
  const auto losses = collector.take_losses();
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses[0].what.text(), "trace_files_unreadable");
  EXPECT_EQ(collector.open_files(), 1U);
}

TEST_F(CollectorTest, FollowsTheLargestAndTheGrowingAndSumsUpTheRest) {
  TraceBuilder builder;
  for (std::uint64_t i = 0; i < 10; ++i) {
    add_site(builder, 0x1000 + 16 * i, 1'000 * (i + 1));
  }
  write("100.trace", builder);
  CollectorOptions few = options();
  few.most_new_by_size = 2;
  few.most_new_by_growth = 1;
  few.most_sites = 3;
  Collector collector(few, world_, clock_);
  AllocationFacts first;
  collector.collect(first);
  builder.site(0).alloc_bytes += 500;
  builder.site(1).alloc_bytes += 10;
  write("100.trace", builder);

  AllocationFacts second;
  collector.collect(second);

  ASSERT_EQ(first.sites.size(), 2U);  // the two largest
  EXPECT_EQ(first.traces[0].rest_bytes, 55'000U - 19'000U);
  ASSERT_EQ(second.sites.size(), 1U);  // the one that grew most
  ASSERT_EQ(second.samples.size(), 1U);
  EXPECT_EQ(second.samples[0].live_bytes, 1'500U);
}

// What a program has loaded does not use up the room and the time of what grows.
TEST_F(CollectorTest, FollowsASiteForItsGrowthOnlyWhileItGrows) {
  TraceBuilder builder;
  add_site(builder, 0x1000, 100'000);
  const auto small = add_site(builder, 0x1010, 10);
  const auto other = add_site(builder, 0x1020, 10);
  write("100.trace", builder);
  CollectorOptions few = options();
  few.most_new_by_size = 0;
  few.most_new_by_growth = 1;
  Collector collector(few, world_, clock_);
  const auto followed = [&] {
    write("100.trace", builder);
    AllocationFacts facts;
    collector.collect(facts);
    return facts.sites.size();
  };

  EXPECT_EQ(followed(), 0U);
  builder.site(small).alloc_bytes += 5'000;
  builder.site(other).alloc_bytes += 4'000;
  EXPECT_EQ(followed(), 1U);
  EXPECT_EQ(followed(), 0U);  // the other one stands still
  builder.site(other).alloc_bytes += 100;
  EXPECT_EQ(followed(), 1U);
}

TEST_F(CollectorTest, LeavesSmallSitesToTheRest) {
  TraceBuilder builder;
  add_site(builder, 0x1010, 100'000'000);
  const auto small = add_site(builder, 0x1020, 100);
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);
  AllocationFacts first;
  collector.collect(first);
  builder.site(small).alloc_bytes += 10'000;  // it grows
  write("100.trace", builder);

  AllocationFacts second;
  collector.collect(second);

  EXPECT_EQ(first.sites.size(), 1U);
  EXPECT_EQ(first.traces[0].rest_bytes, 100U);
  EXPECT_EQ(second.sites.size(), 1U);
  EXPECT_EQ(second.traces[0].rest_bytes, 0U);
}

TEST_F(CollectorTest, GivesOneNumberToOneStackInTwoProcesses) {
  TraceBuilder builder;
  add_site(builder, 0x1010, 5'000);
  write("100.trace", builder);
  builder.header().pid = 101;
  write("101.trace", builder);
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  ASSERT_EQ(facts.sites.size(), 2U);
  EXPECT_EQ(facts.sites[0].frames, facts.sites[1].frames);
  EXPECT_NE(facts.sites[0].site, facts.sites[1].site);
  EXPECT_EQ(facts.frames.size(), 2U);
}

TEST_F(CollectorTest, IsTheClockOfTheTracers) {
  TraceBuilder builder;
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);
  clock_.now_ns = 42 * kNsPerSecond;  // the file was created at second 1

  collector.set_epoch(std::nullopt);
  AllocationFacts facts;
  collector.collect(facts);
  const auto file = TraceFile::open(dir_.path("run/100.trace"));
  ASSERT_TRUE(file);
  auto in_seconds = TraceFile::open(dir_.path("run/100.trace"))->snapshot();
  collector.set_epoch(7);
  auto in_steps = TraceFile::open(dir_.path("run/100.trace"))->snapshot();

  ASSERT_TRUE(in_seconds && in_steps);
  EXPECT_EQ(in_seconds->epoch, 41U);
  EXPECT_EQ(in_steps->epoch, wire::kEpochIsStep | 7U);
}

TEST_F(CollectorTest, TellsWhenLiveBlocksWereBorn) {
  TraceBuilder builder;
  const auto site = add_site(builder, 0x1010, 300);
  builder.add_block(0x5000, 100, site, 0);
  builder.add_block(0x6000, 200, site, 9);
  builder.header().control.epoch = 9;
  write("100.trace", builder);
  CollectorOptions late = options();
  late.start_ns = 0;  // the process began at second 1 of the run
  Collector collector(late, world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  ASSERT_EQ(facts.ages.size(), 1U);
  const auto& ages = facts.ages[0].intervals;
  ASSERT_GE(ages.size(), 2U);
  EXPECT_EQ(ages.front().from, 1.0);
  EXPECT_EQ(ages.front().bytes, 100U);
  EXPECT_EQ(ages.back().bytes, 200U);
}

TEST_F(CollectorTest, TellsHowMuchOfALargeBlockIsResident) {
  TraceBuilder builder;
  const auto site = add_site(builder, 0x1010, 1'000'000);
  builder.add_block(0x5000, 1'000'000, site, 0);
  write("100.trace", builder);
  world_.resident = Residency{0.25, 0.0, 250, 250};
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  ASSERT_EQ(facts.samples.size(), 1U);
  EXPECT_EQ(facts.samples[0].resident_bytes, 250'000U);
}

TEST_F(CollectorTest, LooksAtTheResidencyOfWhatGrewMostHoweverManySitesAreLarge) {
  constexpr std::uint64_t kBytes = 1'000'000;
  TraceBuilder builder;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const auto stable = add_site(builder, 0x1010 + 16 * i, 2 * kBytes);
    builder.add_block(0x1000'0000 * (i + 1), 2 * kBytes, stable, 0);
  }
  const auto reserved = add_site(builder, 0x9010, kBytes);
  builder.add_block(0x7000'0000'0000, kBytes, reserved, 0);
  write("100.trace", builder);
  world_.resident = Residency{0.0, 0.0, 250, 250};
  Collector collector(options(), world_, clock_);
  AllocationFacts first;
  collector.collect(first);
  builder.site(reserved).alloc_bytes += 500'000;
  write("100.trace", builder);

  AllocationFacts second;
  collector.finish(second, kNsPerSecond);

  const auto grown = std::find_if(second.samples.begin(), second.samples.end(),
                                  [](const auto& s) { return s.live_bytes == 1'500'000U; });
  ASSERT_NE(grown, second.samples.end());
  EXPECT_EQ(grown->resident_bytes, 0U);
}

TEST_F(CollectorTest, TellsWhatTheAllocatorKeeps) {
  TraceBuilder builder;
  const auto site = add_site(builder, 0x1010, 1'000);
  builder.add_block(0x5000, 1'000, site, 0);
  write("100.trace", builder);
  world_.mappings = {{{0x1000, 0x100000, AreaKind::kHeap, 9'000, 9'000}}};
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  ASSERT_EQ(facts.accounts.size(), 1U);
  EXPECT_EQ(facts.accounts[0].key, (ProcessKey{100, 5'000}));
  EXPECT_EQ(facts.accounts[0].slack_bytes, 8'000U);
}

TEST_F(CollectorTest, DoesNotCallTheInheritedBlocksOfAForkedChildSlack) {
  TraceBuilder builder;
  builder.header().forked = 1;
  add_site(builder, 0x1010, 1'000);
  write("100.trace", builder);
  world_.mappings = {{{0x1000, 0x100000, AreaKind::kHeap, 9'000, 9'000}}};
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  EXPECT_THAT(facts.accounts, IsEmpty());
}

TEST_F(CollectorTest, NamesLaterWhatItHasNoTimeForNow) {
  TraceBuilder builder;
  add_site(builder, 0x1010, 5'000);
  write("100.trace", builder);
  CollectorOptions hasty = options();
  hasty.naming_budget_ns = -1;
  Collector collector(hasty, world_, clock_);
  AllocationFacts first;
  collector.collect(first);

  AllocationFacts last;
  collector.finish(last, kNsPerSecond);

  ASSERT_EQ(first.sites.size(), 1U);
  EXPECT_THAT(first.sites[0].frames, IsEmpty());
  ASSERT_EQ(last.sites.size(), 1U);
  EXPECT_EQ(last.sites[0].site, first.sites[0].site);
  EXPECT_EQ(last.sites[0].frames.size(), 2U);
}

TEST_F(CollectorTest, DoesNotCountMemoryTwice) {
  TraceBuilder builder;
  add_site(builder, 0x1010, 5'000);
  builder.add_site({builder.add_stack({0x1030}), wire::SiteKind::kAllocatorMap, 100'000, 1});
  builder.add_site({builder.add_stack({0x1040}), wire::SiteKind::kCudaDevice, 7'000, 1});
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  EXPECT_EQ(facts.traces.at(0).live_bytes, 5'000U);
}

TEST_F(CollectorTest, AddsUpSitesOfOneStack) {
  TraceBuilder builder;
  const auto node = builder.add_stack({0x1010});
  const auto first = builder.add_site({node, wire::SiteKind::kHeap, 100, 1});
  const auto second = builder.add_site({node, wire::SiteKind::kHeap, 200, 1});
  builder.add_site({node, wire::SiteKind::kAnonymousMap, 400, 1});
  builder.add_block(0x5000, 100, first);
  builder.add_block(0x6000, 200, second);
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  ASSERT_EQ(facts.samples.size(), 2U);
  EXPECT_EQ(facts.samples[0].live_bytes, 300U);
  EXPECT_EQ(facts.samples[1].live_bytes, 400U);
  ASSERT_EQ(facts.ages.size(), 1U);
  EXPECT_EQ(facts.ages[0].intervals.at(0).bytes, 300U);
}

// Two lanes of one stack, one after the other: each held 1,000 bytes, never both of them.
TEST_F(CollectorTest, DoesNotAddUpPeaksThatWereNotAtOneTime) {
  TraceBuilder builder;
  const auto node = builder.add_stack({0x1010});
  const auto first = builder.add_site({node, wire::SiteKind::kHeap, 1'000, 1, 900, 0, 1'000});
  const auto second = builder.add_site({node, wire::SiteKind::kHeap, 1'000, 1, 0, 0, 1'000});
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);
  AllocationFacts looks[3];
  collector.collect(looks[0]);
  builder.site(first).alloc_bytes += 800;  // 900 and 1,000 at one time
  write("100.trace", builder);
  collector.collect(looks[1]);
  builder.site(second).free_bytes += 1'000;
  write("100.trace", builder);
  collector.collect(looks[2]);

  EXPECT_EQ(looks[0].samples.at(0).peak_bytes, 1'100U);  // 100 and 1,000
  EXPECT_EQ(looks[1].samples.at(0).peak_bytes, 1'900U);
  EXPECT_EQ(looks[2].samples.at(0).peak_bytes, 1'900U);
}

TEST_F(CollectorTest, AddsUpSitesWhoseFramesHaveSeveralNodes) {
  TraceBuilder builder;
  builder.add_module("/lib/libtrain.so", 0x1000, 0x2000, 0x1000);
  const auto first =
      builder.add_site({builder.add_stack({0x1010, 0x1500}), wire::SiteKind::kHeap, 100, 1});
  const auto second =
      builder.add_site({builder.add_stack({0x1010, 0x1500}), wire::SiteKind::kHeap, 200, 1});
  builder.add_block(0x5000, 100, first);
  builder.add_block(0x6000, 200, second);
  // Another caller, and other code that came to the same address.
  builder.add_site({builder.add_stack({0x1010, 0x1600}), wire::SiteKind::kHeap, 400, 1});
  builder.add_module("/lib/libother.so", 0x1000, 0x2000, 0x1000);
  builder.add_site({builder.add_stack({0x1010, 0x1500}), wire::SiteKind::kHeap, 800, 1});
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  std::vector<std::uint64_t> held;
  for (const SiteSample& sample : facts.samples) {
    held.push_back(sample.live_bytes);
  }
  EXPECT_THAT(held, ElementsAre(300U, 400U, 800U));
  ASSERT_EQ(facts.ages.size(), 1U);
  EXPECT_EQ(facts.ages[0].intervals.at(0).bytes, 300U);
}

TEST_F(CollectorTest, LetsTheSiteThatWasSeenFirstStandForItsStack) {
  TraceBuilder builder;
  const auto late = add_site(builder, 0x1010, 100);  // still being set up at the first look
  add_site(builder, 0x1010, 200);
  builder.site(late).ready = 0;
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);
  AllocationFacts first;
  collector.collect(first);
  builder.site(late).ready = 1;
  write("100.trace", builder);

  AllocationFacts second;
  collector.collect(second);

  EXPECT_THAT(second.sites, IsEmpty());
  ASSERT_EQ(second.samples.size(), 1U);
  EXPECT_EQ(second.samples[0].site, first.samples.at(0).site);
  EXPECT_EQ(second.samples[0].live_bytes, 300U);
}

TEST_F(CollectorTest, SaysWhyRecordsWereLost) {
  TraceBuilder builder;
  builder.header().losses.live_full = 5;
  builder.header().extend_errno = EFBIG;
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  EXPECT_EQ(facts.traces.at(0).dropped_records, 5U);
  EXPECT_EQ(facts.traces.at(0).problem, "its file could not grow: File too large");
}

TEST_F(CollectorTest, SaysWhatATracerDoesNotRecordAndMakesNoAccountOfIt) {
  world_.mappings = {{{0x1000, 0x100000, AreaKind::kHeap, 9'000, 9'000}}};
  TraceBuilder builder;
  std::string("the program has its own allocator").copy(builder.header().reason, 95);
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  EXPECT_EQ(facts.traces.at(0).problem, "the program has its own allocator");
  EXPECT_THAT(facts.accounts, IsEmpty());
}

TEST_F(CollectorTest, PassesOnWhatCouldNotBeAsked) {
  world_.problems = {"nobody answers"};
  Collector collector(options(), world_, clock_);

  EXPECT_THAT(collector.take_problems(), ElementsAre("nobody answers"));
  EXPECT_THAT(collector.take_problems(), IsEmpty());
}

TEST_F(CollectorTest, LivesWithoutItsFolder) {
  CollectorOptions nowhere = options();
  nowhere.directory = dir_.path("absent");
  Collector collector(nowhere, world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  EXPECT_TRUE(facts.empty());
}

}  // namespace
}  // namespace tidemark::reader
