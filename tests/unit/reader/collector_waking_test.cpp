// SPDX-License-Identifier: Apache-2.0
// Tracers that were there before: `tidemark profile --pid`.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/reader/collector_fixture.h"

namespace tidemark::reader {
namespace {

using tests::TraceBuilder;
using wire::Mode;

class WakingTest : public CollectorTest {
 protected:
  WakingTest() { clock_.now_ns = 5 * kNsPerSecond; }  // files were created at second 1

  CollectorOptions waking() const {
    CollectorOptions wake = options();
    wake.remove_files = false;
    wake.wake_as = TraceMode::kSampled;
    wake.wake_below = {100};
    wake.sample_every_bytes = 4'096;
    return wake;
  }
  void write_process(std::uint32_t pid, Mode mode, std::uint64_t created_ns = kNsPerSecond) const {
    TraceBuilder builder;
    builder.header().pid = pid;
    builder.header().created_ns = created_ns;
    builder.header().control.mode = static_cast<std::uint32_t>(mode);
    write(std::to_string(pid) + ".trace", builder);
  }
  TraceSnapshot read(std::uint32_t pid) const {
    return *TraceFile::open(dir_.path("run/" + std::to_string(pid) + ".trace"))->snapshot();
  }
};

TEST_F(WakingTest, WakesATracerThatSleepsAndPutsItToSleepAgain) {
  write_process(100, Mode::kDormant);
  Collector collector(waking(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);
  const TraceSnapshot awake = read(100);
  collector.put_to_sleep();

  EXPECT_EQ(awake.mode, TraceMode::kSampled);
  EXPECT_EQ(awake.sample_every_bytes, 4'096U);
  EXPECT_EQ(read(100).mode, TraceMode::kDormant);
}

TEST_F(WakingTest, LeavesTheDeadAndTheProcessesOfOthersAlone) {
  for (const std::uint32_t pid : {100U, 101U, 102U}) {
    write_process(pid, Mode::kDormant);
  }
  world_.dead.insert(101);
  world_.strangers.insert(102);
  Collector collector(waking(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);

  EXPECT_EQ(collector.files_seen(), 1U);
  EXPECT_EQ(facts.traces.size(), 1U);
  EXPECT_EQ(read(100).mode, TraceMode::kSampled);
  EXPECT_EQ(read(101).mode, TraceMode::kDormant);
  EXPECT_EQ(read(102).mode, TraceMode::kDormant);
  EXPECT_TRUE(collector.take_problems().empty());
}

TEST_F(WakingTest, GivesATracerThatWorkedAlreadyItsModeBack) {
  write_process(100, Mode::kExact);
  write_process(101, Mode::kSampled, 9 * kNsPerSecond);  // born later, with our mode
  Collector collector(waking(), world_, clock_);

  AllocationFacts facts;
  collector.collect(facts);
  const TraceMode meanwhile = read(100).mode;
  collector.put_to_sleep();

  EXPECT_EQ(meanwhile, TraceMode::kSampled);
  EXPECT_EQ(read(100).mode, TraceMode::kExact);
  EXPECT_EQ(read(101).mode, TraceMode::kDormant);
}

TEST(TraceWorld, KnowsWhoIsBelowAProcess) {
  const tests::TempTree proc;
  proc.write("10/stat", "10 (a) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0 0 0 0 0");
  proc.write("11/stat", "11 (c) S 10 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 501 0 0 0 0 0 0");
  proc.write("12/stat", "12 (d) S 11 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 502 0 0 0 0 0 0");
  proc.write("20/stat", "20 (e) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 503 0 0 0 0 0 0");
  const auto world = make_trace_world(proc.path());

  EXPECT_TRUE(world->is_in_tree({10, 500}, 10));
  EXPECT_TRUE(world->is_in_tree({12, 502}, 10));
  EXPECT_FALSE(world->is_in_tree({20, 503}, 10));
  EXPECT_FALSE(world->is_in_tree({10, 500}, 12));
}

}  // namespace
}  // namespace tidemark::reader
