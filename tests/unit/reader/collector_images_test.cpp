// SPDX-License-Identifier: Apache-2.0
// One process after the other in one pid: images that exec has replaced.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "tests/unit/reader/collector_fixture.h"

namespace tidemark::reader {
namespace {

using tests::TraceBuilder;
using CollectorOfImages = CollectorTest;

TraceBuilder replaced_trace() {
  TraceBuilder builder;
  builder.header().stage = static_cast<std::uint32_t>(wire::Stage::kReplaced);
  add_site(builder, 0x1010, 5'000);
  return builder;
}

TEST_F(CollectorOfImages, IsDoneWithAnImageThatWasReplacedByExec) {
  TraceBuilder builder = replaced_trace();
  write("100.trace", builder);
  world_.mapped = false;
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  EXPECT_TRUE(facts.traces.at(0).has_ended);
  EXPECT_FALSE(exists("100.trace"));
}

// Each look falls into another attempt of a program that tries exec in one folder after the other.
TEST_F(CollectorOfImages, KeepsTheFileOfAProcessWhoseExecFails) {
  TraceBuilder builder = replaced_trace();
  write("100.trace", builder);
  Collector collector(options(), world_, clock_);
  AllocationFacts facts;
  collector.collect(facts);
  collector.collect(facts);

  ASSERT_TRUE(exists("100.trace"));
  EXPECT_FALSE(facts.traces.at(1).has_ended);
  builder.header().stage = static_cast<std::uint32_t>(wire::Stage::kRecording);
  builder.site(0).alloc_bytes += 1'000;
  write("100.trace", builder);
  facts = {};
  collector.collect(facts);

  ASSERT_EQ(facts.samples.size(), 1U);
  EXPECT_EQ(facts.samples[0].live_bytes, 6'000U);
}

TEST_F(CollectorOfImages, WhereMappingsCannotBeReadAnImageIsReplacedWhenItStaysSo) {
  TraceBuilder builder = replaced_trace();
  write("100.trace", builder);
  world_.mapped = std::nullopt;
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);
  EXPECT_FALSE(facts.traces.at(0).has_ended);
  builder.header().stage = static_cast<std::uint32_t>(wire::Stage::kRecording);
  write("100.trace", builder);
  collector.collect(facts);
  builder.header().stage = static_cast<std::uint32_t>(wire::Stage::kReplaced);
  write("100.trace", builder);
  collector.collect(facts);
  EXPECT_TRUE(exists("100.trace"));
  collector.collect(facts);
  EXPECT_TRUE(facts.traces.at(3).has_ended);
  EXPECT_FALSE(exists("100.trace"));
}

TEST(TraceWorld, KnowsWhichFilesAProcessHasMapped) {
  const tests::TempTree proc;
  proc.make_directory("100");
  proc.write("100/maps",
             "7f1000-7f2000 rw-s 00000000 00:17 9   /dev/shm/tidemark-0/x/100-5.trace\n"
             "7f2000-7f3000 rw-s 00001000 00:17 9   /gone/100-6.trace (deleted)\n");
  const auto world = make_trace_world(proc.path());

  EXPECT_EQ(world->is_mapped({100, 1}, "100-5.trace"), true);
  EXPECT_EQ(world->is_mapped({100, 1}, "100-6.trace"), true);
  EXPECT_EQ(world->is_mapped({100, 1}, "00-6.trace"), false);
  EXPECT_EQ(world->is_mapped({101, 1}, "100-5.trace"), std::nullopt);
}

// What it says about the sites of both images would be taken for one.
TEST_F(CollectorOfImages, TellsOfOneImageOfAProcessAtATime) {
  TraceBuilder shell;
  add_site(shell, 0x1010, 5'000);
  write("100-1.trace", shell);
  TraceBuilder trainer;
  add_site(trainer, 0x1020, 7'000);
  write("100-2.trace", trainer);
  Collector collector(options(), world_, clock_);

  AllocationFacts first;
  collector.collect(first);
  AllocationFacts second;
  collector.collect(second);

  ASSERT_EQ(first.traces.size(), 1U);
  EXPECT_TRUE(first.traces[0].has_ended);
  EXPECT_EQ(first.traces[0].live_bytes, 5'000U);
  EXPECT_EQ(first.sites.size(), 1U);
  ASSERT_EQ(second.traces.size(), 1U);
  EXPECT_FALSE(second.traces[0].has_ended);
  EXPECT_EQ(second.traces[0].live_bytes, 7'000U);
  EXPECT_EQ(second.sites.size(), 1U);
}

TEST_F(CollectorOfImages, LeavesNoImageOutAtTheEnd) {
  for (const char* const name : {"100-1.trace", "100-2.trace", "100-3.trace"}) {
    TraceBuilder builder;
    add_site(builder, 0x1010, 5'000);
    write(name, builder);
  }
  Collector collector(options(), world_, clock_);

  AllocationFacts facts;
  collector.finish(facts, kNsPerSecond);

  EXPECT_EQ(facts.traces.size(), 3U);
  EXPECT_EQ(facts.samples.size(), 3U);
}

}  // namespace
}  // namespace tidemark::reader
