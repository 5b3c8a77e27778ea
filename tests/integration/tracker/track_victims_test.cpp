// SPDX-License-Identifier: Apache-2.0
// `tidemark track -- VICTIM`: the verdict on programs whose memory curve is known. The victims
// announce their steps, and their memory depends on the step alone, so that a busy machine does not
// change the curve.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/integration/tracker/tracked_victim.h"

namespace tidemark {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using tests::Output;
using tests::run_tool;
using tests::track_victim;
using tests::TrackedVictim;

constexpr double kMiB = 1024.0 * 1024.0;

const std::vector<std::string> kWarmup = {"--warmup", "110steps"};

void expect_answer(const TrackedVictim& run, const std::string& verdict, int exit_code) {
  EXPECT_EQ(run.verdict.at("verdict"), verdict) << run.live.out;
  EXPECT_EQ(run.live.exit_code, exit_code) << run.live.err;
  EXPECT_EQ(run.verdict.at("schema"), 1);
  EXPECT_EQ(run.verdict.at("metric"), "footprint");
}

// What a live command shows, its recording shows again.
void expect_same_again(const TrackedVictim& run) {
  EXPECT_EQ(run.again.exit_code, run.live.exit_code);
  for (const char* const part : {"verdict", "where", "floor_bytes", "ceiling_bytes", "patterns"}) {
    EXPECT_EQ(run.verdict_again.at(part), run.verdict.at(part)) << part;
  }
}

void expect_in_the_victim(const TrackedVictim& run) {
  EXPECT_EQ(run.verdict.at("where").at("kind"), "process");
  EXPECT_EQ(run.verdict.at("where").at("pid"), run.truth.at("pid"));
}

// The growth is that of the workers, and it is known why.
void expect_copying_workers(const TrackedVictim& run) {
  ASSERT_TRUE(run.verdict.at("carrier").is_object()) << run.live.out;
  EXPECT_EQ(run.verdict.at("carrier").at("role"), "dataloader_worker");
  std::vector<std::string> advice;
  for (const json& one : run.verdict.at("advice")) {
    advice.push_back(one.at("id"));
  }
  EXPECT_THAT(advice, Contains("dataloader_copy_on_write"));
}

void expect_near_truth(const json& value, const json& truth, double share) {
  ASSERT_TRUE(value.is_number());
  EXPECT_NEAR(value.get<double>(), truth.get<double>(), share * truth.get<double>());
}

TEST(TrackVictims, ALinearLeakIsALeakWithItsRatePerStep) {
  const TrackedVictim run = track_victim({{"leak_linear", "--steps"}, kWarmup, {}});

  expect_answer(run, "leak", 1);
  expect_in_the_victim(run);
  const json leak = run.pattern("leak");
  ASSERT_TRUE(leak.is_object()) << run.live.out;
  EXPECT_EQ(leak.at("shape"), "linear");
  expect_near_truth(leak.at("rate_bytes_per_step"), run.truth.at("rate_bytes_per_step"), 0.1);
  expect_same_again(run);
}

TEST(TrackVictims, ALeakIsSeenWithoutStepsToo) {
  const TrackedVictim run = track_victim({{"leak_linear"}, {"--warmup", "3s"}, {}});

  expect_answer(run, "leak", 1);
  EXPECT_TRUE(run.pattern("leak").at("rate_bytes_per_step").is_null());
  expect_same_again(run);
}

TEST(TrackVictims, TheTextNamesTheProcessThatLeaks) {
  const Output output = run_tool({"track", "--interval", "50ms", "--warmup", "110steps", "--",
                                  tests::victim_path("leak_linear"), "--steps"});

  EXPECT_EQ(output.exit_code, 1);
  const json truth = json::parse(output.out);  // stdout is the command's alone
  EXPECT_THAT(output.err, HasSubstr("leak"));
  EXPECT_THAT(output.err, HasSubstr(std::to_string(truth.at("pid").get<pid_t>())));
}

TEST(TrackVictims, InsideTheAllowanceALeakIsOnlyGrowing) {
  const TrackedVictim run =
      track_victim({{"leak_linear", "--steps", "--count", "200", "--flat-steps", "0"},
                    {"--warmup", "1000steps"},
                    {}});

  expect_answer(run, "growing", 4);
  EXPECT_THAT(run.verdict.at("needs").get<std::string>(), HasSubstr("steps"));
  expect_same_again(run);
}

TEST(TrackVictims, GrowthThatEndsIsAWarmup) {
  const TrackedVictim run = track_victim({{"plateau_after_warmup", "--steps"}, kWarmup, {}});

  expect_answer(run, "warmup", 0);
  expect_in_the_victim(run);
  const json warmup = run.pattern("warmup");
  ASSERT_TRUE(warmup.is_object()) << run.live.out;
  EXPECT_NEAR(warmup.at("to_step").get<double>(), run.truth.at("settled_step").get<double>(), 30);
  expect_near_truth(run.verdict.at("floor_bytes").at("last"), run.truth.at("settled_bytes"), 0.1);
  expect_same_again(run);
}

TEST(TrackVictims, ASawtoothWithAFlatFloorIsSpikes) {
  const TrackedVictim run = track_victim({{"sawtooth", "--steps"}, kWarmup, {}});

  expect_answer(run, "spikes", 0);
  expect_in_the_victim(run);
  const json spikes = run.pattern("spikes");
  ASSERT_TRUE(spikes.is_object()) << run.live.out;
  expect_near_truth(spikes.at("height_bytes"), run.truth.at("height_bytes"), 0.25);
  expect_near_truth(spikes.at("period_steps"), run.truth.at("period_steps"), 0.25);
  expect_same_again(run);
}

TEST(TrackVictims, ALeakBelowLargeSpikesIsFoundAndSoAreTheSpikes) {
  const TrackedVictim run = track_victim({{"spikes_over_leak", "--steps"}, kWarmup, {}});

  expect_answer(run, "leak", 1);
  expect_in_the_victim(run);
  const json leak = run.pattern("leak");
  ASSERT_TRUE(leak.is_object()) << run.live.out;
  expect_near_truth(leak.at("rate_bytes_per_step"), run.truth.at("rate_bytes_per_step"), 0.15);
  const json spikes = run.pattern("spikes");
  ASSERT_TRUE(spikes.is_object()) << run.live.out;
  expect_near_truth(spikes.at("height_bytes"), run.truth.at("height_bytes"), 0.25);
  expect_same_again(run);
}

TEST(TrackVictims, ACacheThatReachesItsCapIsAWarmup) {
  const TrackedVictim run = track_victim({{"cache_with_cap", "--steps"}, kWarmup, {}});

  expect_answer(run, "warmup", 0);
  expect_in_the_victim(run);
  expect_near_truth(run.verdict.at("floor_bytes").at("last"), run.truth.at("settled_bytes"), 0.1);
  expect_same_again(run);
}

TEST(TrackVictims, MemoryThatTheAllocatorKeepsIsAWarmup) {
  const TrackedVictim run = track_victim({{"freed_but_resident", "--steps"}, kWarmup, {}});

  expect_answer(run, "warmup", 0);
  expect_in_the_victim(run);
  EXPECT_GT(run.verdict.at("floor_bytes").at("last").get<double>(),
            run.truth.at("in_use_bytes").get<double>() + 50 * kMiB)
      << "resident although nothing uses it";
  expect_same_again(run);
}

TEST(TrackVictims, WorkersThatCopyOnWriteEndInAWarmupThoughTheirRssNeverMoved) {
  const TrackedVictim run =
      track_victim({{"cow_workers", "--steps"}, kWarmup, {"--pss", "always"}});

  expect_answer(run, "warmup", 0);
  expect_copying_workers(run);
  expect_same_again(run);
}

TEST(TrackVictims, WorkersThatStillCopyAreGrowingNotLeaking) {
  const TrackedVictim run =
      track_victim({{"cow_workers", "--steps", "--count", "300", "--copy-steps", "600"},
                    kWarmup,
                    {"--pss", "always"}});

  expect_answer(run, "growing", 4);
  expect_copying_workers(run);
  expect_near_truth(run.verdict.at("forecast").at("asymptote_bytes"), run.truth.at("settled_bytes"),
                    0.15);
  expect_same_again(run);
}

}  // namespace
}  // namespace tidemark
