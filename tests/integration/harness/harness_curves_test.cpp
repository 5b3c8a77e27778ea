// SPDX-License-Identifier: Apache-2.0
// Each scenario at a small size: /proc shows the curve that the truth tells.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/harness/harness_run.h"

namespace tidemark::tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr double kMb = 60;
constexpr double kNoiseMb = 4;  // buffers of libtorch, the heap's own granularity
constexpr double kMiB = 1024.0 * 1024.0;

struct Curve {
  std::vector<double> mib;

  double first() const { return mib.front(); }
  double highest() const { return *std::max_element(mib.begin(), mib.end()); }
  // What it usually is in a part of the run: from and to are shares of its length.
  double median(double from, double to) const {
    const auto at = [&](double share) {
      return mib.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(mib.size() - 1));
    };
    std::vector<double> part(at(from), at(to) + 1);
    std::nth_element(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2),
                     part.end());
    return part[part.size() / 2];
  }
  double lowest(double from, double to) const {
    const auto size = static_cast<double>(mib.size() - 1);
    return *std::min_element(mib.begin() + static_cast<std::ptrdiff_t>(from * size),
                             mib.begin() + static_cast<std::ptrdiff_t>(to * size) + 1);
  }
};

struct Watched {
  Curve curve;
  json truth;
  std::string output;
};

// 100 steps of 15 ms.
Watched watch(std::vector<std::string> words) {
  words.insert(words.end(), {"--steps", "100", "--step-time", "15ms"});
  if (std::find(words.begin(), words.end(), "--mb") == words.end()) {
    words.insert(words.end(), {"--mb", "60"});
  }
  HarnessRun run(words);
  Watched watched;
  watched.curve.mib = run.anonymous_mib();
  EXPECT_EQ(run.finish(), 0) << run.process().errors();
  EXPECT_GT(watched.curve.mib.size(), 20U);
  watched.truth = run.truth();
  watched.output = run.process().output();
  EXPECT_EQ(watched.truth["complete"], true);
  EXPECT_EQ(watched.truth["steps_done"], 100);
  return watched;
}

TEST(HarnessCurve, OfASteadyRunIsFlat) {
  const Watched run = watch({"steady"});

  EXPECT_EQ(run.truth["class"], "stable");
  EXPECT_NEAR(run.curve.highest(), run.curve.first(), kNoiseMb);
  EXPECT_GT(run.curve.first(), kMb);
}

TEST(HarnessCurve, OfAWarmupRisesInTheFirstEpochOnly) {
  const Watched run = watch({"warmup"});

  EXPECT_EQ(run.truth["class"], "warmup");
  EXPECT_EQ(run.truth["plateau_step"], 20);
  EXPECT_NEAR(run.truth["patterns"][0]["growth_bytes"].get<double>(), kMb * kMiB, kMiB);
  EXPECT_NEAR(run.curve.median(0.5, 0.6) - run.curve.first(), kMb, kNoiseMb);
  EXPECT_NEAR(run.curve.median(0.9, 1), run.curve.median(0.5, 0.6), kNoiseMb);
}

TEST(HarnessCurve, OfSpikesComesBackAfterEachEvaluation) {
  const Watched run = watch({"spikes"});

  EXPECT_EQ(run.truth["class"], "spikes");
  EXPECT_EQ(run.truth["patterns"][0]["period_steps"], 12);
  EXPECT_NEAR(run.curve.highest() - run.curve.first(), kMb, kNoiseMb);
  EXPECT_NEAR(run.curve.lowest(0.8, 1), run.curve.first(), kNoiseMb);
  EXPECT_THAT(run.output, HasSubstr("Step 12 eval_loss="));
}

TEST(HarnessCurve, OfAStaircaseRisesAtCheckpoints) {
  const Watched run = watch({"staircase"});

  EXPECT_EQ(run.truth["class"], "leak");
  EXPECT_EQ(run.truth["patterns"][0]["shape"], "steps");
  EXPECT_THAT(run.truth["allocating_line"], HasSubstr("trainer_harness/held_tensors.cpp:"));
  EXPECT_NEAR(run.curve.median(0.45, 0.55) - run.curve.first(), kMb / 2, kMb / 10 + kNoiseMb);
  EXPECT_GT(run.curve.highest() - run.curve.first(), kMb * 0.9 - kNoiseMb);
}

TEST(HarnessCurve, OfASawtoothFallsBackToItsFloor) {
  const Watched run = watch({"sawtooth"});

  EXPECT_EQ(run.truth["class"], "spikes");
  EXPECT_GT(run.curve.highest() - run.curve.first(), kMb * 0.7);
  EXPECT_LT(run.curve.lowest(0.7, 1) - run.curve.first(), kMb * 0.3);
}

TEST(HarnessCurve, OfFragmentationStaysUpAfterTheMemoryIsFreed) {
  const Watched run = watch({"fragmentation"});

  EXPECT_EQ(run.truth["class"], "warmup");
  EXPECT_NEAR(run.curve.median(0.5, 1) - run.curve.first(), kMb, kNoiseMb);
}

TEST(HarnessCurve, OfAComposedRunDoesAllOfIt) {
  const Watched run = watch({"warmup+spikes", "--cause", "native", "--mb-per-step", "0.5"});

  EXPECT_EQ(run.truth["class"], "leak");
  EXPECT_EQ(run.truth["patterns"].size(), 3U);
  const double leaked = 0.5 * 70;
  EXPECT_NEAR(run.curve.highest() - run.curve.first(), 2 * kMb + leaked, leaked / 4 + kNoiseMb);
}

TEST(HarnessCurve, OfAReplayedJobIsItsLogToScale) {
  HarnessRun job({"--replay", "job1", "--scale", "0.005", "--step-time", "8ms"});

  const Curve curve{job.anonymous_mib()};

  EXPECT_EQ(job.finish(), 0);
  const json truth = job.truth();
  EXPECT_EQ(truth["class"], "warmup");
  EXPECT_EQ(truth["steps_done"], 240);
  EXPECT_EQ(truth["plateau_step"], 90);
  EXPECT_NEAR(curve.highest() - curve.first(), 0.005 * (17882 - 5376), kNoiseMb);
  EXPECT_NEAR(curve.median(0.5, 0.6), curve.median(0.9, 1), 1);
}

TEST(HarnessCurve, FollowsASawtoothThatIsCleanedUpEarlier) {
  const Watched run = watch({"sawtooth", "--cleanup-every", "2"});

  EXPECT_LT(run.curve.highest() - run.curve.first(), kMb * 0.6 + kNoiseMb);
  EXPECT_THAT(run.output, HasSubstr("Step 2 cleanup took "));
  EXPECT_THAT(run.output, HasSubstr(" % of the time so far"));
}

class HarnessLeak : public ::testing::TestWithParam<const char*> {};

TEST_P(HarnessLeak, RisesAsToldAfterAFlatStretch) {
  const Watched run = watch({"leak", "--cause", GetParam(), "--from-step", "40"});

  EXPECT_EQ(run.truth["class"], "leak");
  EXPECT_EQ(run.truth["cause"], GetParam());
  const json leak = run.truth["patterns"][0];
  EXPECT_NEAR(leak["bytes_per_step"].get<double>(), kMiB, 1);
  // Not faster than planned; how much slower is the machine's business.
  EXPECT_LE(leak["bytes_per_s"].get<double>(), 1.02 * kMiB / 0.015);
  EXPECT_GE(leak["bytes_per_s"].get<double>(),
            0.6 * 60 * kMiB / run.truth["seconds"].get<double>());
  EXPECT_THAT(run.truth["allocating_line"], HasSubstr("trainer_harness/"));
  EXPECT_NEAR(run.curve.median(0.1, 0.3), run.curve.first(), kNoiseMb);
  EXPECT_NEAR(run.curve.highest() - run.curve.first(), kMb, kMb / 10 + 2);
}

INSTANTIATE_TEST_SUITE_P(Causes, HarnessLeak,
                         ::testing::Values("collator", "autograd", "optimizer", "native",
                                           "pinned"));

}  // namespace
}  // namespace tidemark::tests
