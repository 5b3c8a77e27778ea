// SPDX-License-Identifier: Apache-2.0
// However a run ends, its truth can be read and nothing of it stays behind.
#include <signal.h>

#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"
#include "tests/integration/harness/harness_run.h"

namespace tidemark::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Everything that could stay behind: a pool, forked workers, segments and their manager.
const std::vector<std::string> kEverything = {"compile-workers+dataloader-cow",
                                              "--workers",
                                              "2",
                                              "--worker-mb",
                                              "4",
                                              "--mb",
                                              "8",
                                              "--cause",
                                              "shm",
                                              "--from-step",
                                              "0",
                                              "--mb-per-step",
                                              "0.2",
                                              "--steps",
                                              "100000",
                                              "--step-time",
                                              "10ms"};

std::vector<pid_t> all_pids(const nlohmann::json& truth) {
  std::vector<pid_t> pids;
  for (const auto& process : truth.at("processes")) {
    pids.push_back(process["pid"]);
  }
  return pids;
}

class HarnessEnding : public ::testing::TestWithParam<int> {
 protected:
  // Another moment of the run for each parameter.
  void let_it_run() { std::this_thread::sleep_for(std::chrono::milliseconds(97 * GetParam())); }
};

TEST_P(HarnessEnding, BySigtermCompletesTheTruth) {
  HarnessRun run(kEverything);
  ASSERT_TRUE(run.wait_for_training());
  let_it_run();
  const pid_t trainer = run.process().pid();

  run.process().signal(SIGTERM);

  EXPECT_EQ(run.finish(), 0) << run.process().errors();
  const auto truth = run.truth();
  EXPECT_EQ(truth["complete"], true);
  EXPECT_LT(truth["steps_done"], 100000);
  EXPECT_GT(all_pids(truth).size(), 6U);
  EXPECT_THAT(still_running(all_pids(truth)), IsEmpty());
  EXPECT_THAT(segments_of(trainer), IsEmpty());
}

TEST_P(HarnessEnding, BySigkillLeavesATruthAndNothingElse) {
  HarnessRun run(kEverything);
  ASSERT_TRUE(run.wait_for_training());
  let_it_run();
  const pid_t trainer = run.process().pid();

  run.process().signal(SIGKILL);

  EXPECT_EQ(run.finish(), 128 + SIGKILL);
  const auto truth = run.truth();
  EXPECT_EQ(truth["complete"], false);
  EXPECT_EQ(truth["class"], "leak");
  EXPECT_GT(all_pids(truth).size(), 6U);
  EXPECT_THAT(still_running(all_pids(truth)), IsEmpty());
  EXPECT_THAT(segments_of(trainer), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Moments, HarnessEnding, ::testing::Values(0, 1, 3));

TEST(HarnessStart, KilledEarlyLeavesNoPartOfATruth) {
  for (int milliseconds = 0; milliseconds < 600; milliseconds += 120) {
    HarnessRun run(kEverything);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));

    run.process().signal(SIGKILL);

    run.finish();
    const auto truth = run.truth();  // there is none yet, or it is whole
    ASSERT_TRUE(truth.is_null() || truth.is_object());
    if (truth.is_object()) {
      EXPECT_THAT(still_running(all_pids(truth)), IsEmpty());
    }
  }
}

TEST(HarnessStart, RefusesADeviceThatIsNotThere) {
  HarnessRun run({"steady", "--device", "cuda", "--steps", "1", "--mb", "1"});

  const int code = run.finish();

  if (code == 0) {
    GTEST_SKIP() << "there is a CUDA device";
  }
  EXPECT_EQ(code, 3);
  EXPECT_THAT(run.process().errors(), HasSubstr("no CUDA device; try --device cpu"));
}

TEST(HarnessStart, RefusesWhatItDoesNotKnow) {
  HarnessRun run({"leek"});

  EXPECT_EQ(run.finish(), 2);
  EXPECT_THAT(run.process().errors(), HasSubstr("no scenario is called \"leek\""));
}

TEST(HarnessStart, SaysWhyTheTruthCannotBeWritten) {
  Subprocess run({harness_path(), "train", "steady", "--steps", "1", "--truth", "/nowhere/t.json"});

  EXPECT_EQ(run.wait(), 3);
  EXPECT_THAT(run.errors(), HasSubstr("/nowhere/t.json"));
}

TEST(HarnessCrash, IsACrash) {
  HarnessRun run({"steady", "--mb", "1", "--steps", "10", "--step-time", "1ms", "--crash-at", "5"});

  EXPECT_EQ(run.finish(), 128 + SIGABRT);
  EXPECT_EQ(run.truth()["complete"], false);
}

}  // namespace
}  // namespace tidemark::tests
