// SPDX-License-Identifier: Apache-2.0
// The recorded jobs at a small scale: at every step the trainer holds what the log said, and the
// truth is about that curve.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/text.h"
#include "tests/integration/harness/harness_run.h"
#include "trainer_harness/replay_curves.h"

namespace tidemark::tests {
namespace {

using harness::Replay;
using nlohmann::json;

constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kNoiseMib = 4;  // buffers of libtorch, the heap's own granularity
constexpr std::uint64_t kSeed = 1;

struct Replayed {
  std::vector<double> mib;  // resident after step 1, 2, ...
  json truth;

  double rise() const { return mib.back() - mib.front(); }
  double height() const {
    const auto [low, high] = std::minmax_element(mib.begin(), mib.end());
    return *high - *low;
  }
  const json& pattern(const std::string& kind) const {
    const json& all = truth.at("patterns");
    return *std::find_if(all.begin(), all.end(), [&](const json& p) { return p["kind"] == kind; });
  }
};

Replayed replay(const std::string& job, double scale) {
  HarnessRun run({"--replay", job, "--scale", std::to_string(scale), "--seed",
                  std::to_string(kSeed), "--step-time", "2ms", "--batch", "1", "--progress-fd",
                  "1"});
  EXPECT_EQ(run.finish(), 0) << run.process().errors();
  Replayed replayed;
  replayed.truth = run.truth();
  std::string_view rest = run.process().output();
  while (const auto line = next_line(rest)) {
    if (line->starts_with(R"({"step":)")) {
      replayed.mib.push_back(json::parse(*line)["rss_bytes"].get<double>() / kMiB);
    }
  }
  return replayed;
}

// By how much memory leaves the log's curve at most; both begin at the same height.
double worst_deviation_mib(const Replayed& run, Replay replay, double scale) {
  double worst = 0;
  for (std::size_t i = 0; i < run.mib.size(); ++i) {
    const double logged_mb =
        harness::replayed_mb(replay, i + 1, kSeed) - harness::replayed_mb(replay, 1, kSeed);
    worst = std::max(worst, std::fabs(run.mib[i] - run.mib.front() - logged_mb * scale));
  }
  return worst;
}

TEST(HarnessReplay, OfJob2RisesToItsPlateau) {
  const Replayed run = replay("job2", 0.005);

  ASSERT_EQ(run.mib.size(), 180U);
  EXPECT_LT(worst_deviation_mib(run, Replay::kJob2, 0.005), kNoiseMib);
  EXPECT_EQ(run.truth["class"], "warmup");
  EXPECT_NEAR(run.rise(), run.pattern("warmup")["growth_bytes"].get<double>() / kMiB, kNoiseMib);
}

TEST(HarnessReplay, OfValspikeComesBackAfterEachValidation) {
  const Replayed run = replay("valspike", 0.01);

  ASSERT_EQ(run.mib.size(), 240U);
  EXPECT_LT(worst_deviation_mib(run, Replay::kValspike, 0.01), kNoiseMib);
  EXPECT_EQ(run.truth["class"], "spikes");
  EXPECT_NEAR(run.height(), run.pattern("spikes")["height_bytes"].get<double>() / kMiB, kNoiseMib);
  EXPECT_NEAR(run.rise(), 0, kNoiseMib);
}

TEST(HarnessReplay, OfSlowleakRisesBelowItsSpikes) {
  const Replayed run = replay("slowleak", 0.02);

  ASSERT_EQ(run.mib.size(), 240U);
  EXPECT_LT(worst_deviation_mib(run, Replay::kSlowleak, 0.02), kNoiseMib);
  EXPECT_EQ(run.truth["class"], "leak");
  EXPECT_NEAR(run.rise(), 239 * run.pattern("leak")["bytes_per_step"].get<double>() / kMiB,
              kNoiseMib);
}

TEST(HarnessReplay, OfCatastrophicRisesInJumps) {
  const Replayed run = replay("catastrophic", 0.01);

  ASSERT_EQ(run.mib.size(), 108U);
  EXPECT_LT(worst_deviation_mib(run, Replay::kCatastrophic, 0.01), kNoiseMib);
  EXPECT_EQ(run.truth["class"], "leak");
  EXPECT_EQ(run.pattern("leak")["shape"], "steps");
  const double jump_mib = 2;
  EXPECT_NEAR(run.rise(), 107 * run.pattern("leak")["bytes_per_step"].get<double>() / kMiB,
              jump_mib + kNoiseMib);
}

}  // namespace
}  // namespace tidemark::tests
