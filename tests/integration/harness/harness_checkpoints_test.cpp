// SPDX-License-Identifier: Apache-2.0
// Training is real and repeatable; a checkpoint carries it over the end of a process.
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"
#include "common/text.h"
#include "tests/integration/harness/harness_run.h"

namespace tidemark::tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string log_of(std::vector<std::string> more, const std::string& scenario = "steady") {
  std::vector<std::string> words = {scenario, "--mb", "1", "--step-time", "1ms"};
  words.insert(words.end(), more.begin(), more.end());
  HarnessRun run(words);
  EXPECT_EQ(run.finish(), 0) << run.process().errors();
  return run.process().output();
}

// The loss at a step, as it was printed.
std::string loss_at(const std::string& log, int step, const std::string& name = "loss") {
  const std::string mark = "Step " + std::to_string(step) + " " + name + "=";
  const std::size_t at = log.find(mark);
  return at == std::string::npos ? "" : log.substr(at + mark.size(), 6);
}

TEST(HarnessTraining, Learns) {
  const std::string log = log_of({"--steps", "150"});

  EXPECT_LT(std::stod(loss_at(log, 150)), 0.7 * std::stod(loss_at(log, 10)));
}

TEST(HarnessTraining, IsTheSameForTheSameSeedOnly) {
  const std::string first = loss_at(log_of({"--steps", "20", "--seed", "7"}), 20);

  EXPECT_EQ(loss_at(log_of({"--steps", "20", "--seed", "7"}), 20), first);
  EXPECT_NE(loss_at(log_of({"--steps", "20", "--seed", "8"}), 20), first);
}

// The first epoch has 5 steps: from then on the images come from the cache.
TEST(HarnessTraining, SeesTheSameImagesInACacheOrInALoadedSetAsWithout) {
  const std::string plain = log_of({"--steps", "25", "--log-every", "25", "--eval-every", "10"});
  const std::string held =
      log_of({"--steps", "25", "--log-every", "25", "--eval-every", "10"}, "warmup+spikes");

  ASSERT_NE(loss_at(plain, 25), "");
  EXPECT_EQ(loss_at(held, 25), loss_at(plain, 25));
  ASSERT_NE(loss_at(plain, 20, "eval_loss"), "");
  EXPECT_EQ(loss_at(held, 20, "eval_loss"), loss_at(plain, 20, "eval_loss"));
}

TEST(HarnessTraining, LearnsFromTheImagesInTheCache) {
  // 0.03 MiB for 80 images: too small for all of their pixels.
  const std::string coarse =
      log_of({"--steps", "25", "--log-every", "25", "--mb", "0.03"}, "warmup");

  EXPECT_NE(loss_at(coarse, 25), loss_at(log_of({"--steps", "25", "--log-every", "25"}), 25));
}

TEST(HarnessCheckpoint, OfARunThatWasEndedLetsTheNextOneGoOnAsIfNothingHappened) {
  const TempTree folder;
  const std::string file = folder.path("model.pt");
  const std::string whole = log_of({"--steps", "60"});
  HarnessRun run(
      {"steady", "--mb", "1", "--steps", "60", "--step-time", "50ms", "--checkpoint", file});
  run.process().read_until("Step 20 ");

  run.process().signal(SIGTERM);

  EXPECT_EQ(run.finish(), 0);
  const int step = run.truth()["steps_done"];
  EXPECT_GE(step, 20);
  EXPECT_LT(step, 60);
  const std::string rest = log_of({"--steps", "60", "--resume", file});
  EXPECT_THAT(rest, HasSubstr("at step " + std::to_string(step) + "\n"));
  EXPECT_EQ(loss_at(rest, 20), "");
  EXPECT_EQ(loss_at(rest, 60), loss_at(whole, 60));
}

TEST(HarnessCheckpoint, LetsTheTruthTellWhatTheResumedProcessDid) {
  const TempTree folder;
  const std::string file = folder.path("model.pt");
  log_of({"--steps", "50", "--checkpoint", file});

  HarnessRun run({"warmup", "--mb", "20", "--batch", "1", "--steps", "100", "--step-time", "1ms",
                  "--resume", file});

  EXPECT_EQ(run.finish(), 0) << run.process().errors();

  const json truth = run.truth();
  EXPECT_EQ(truth["first_step"], 51);
  EXPECT_EQ(truth["class"], "warmup");
  EXPECT_EQ(truth["plateau_step"], 70);
  EXPECT_EQ(truth["patterns"][0]["from_step"], 50);
}

TEST(HarnessCheckpoint, ThatCannotBeReadIsAnError) {
  const TempTree folder;
  folder.write("model.pt", "no archive");

  HarnessRun run({"steady", "--mb", "1", "--steps", "5", "--resume", folder.path("model.pt")});

  EXPECT_EQ(run.finish(), 3);
  EXPECT_THAT(run.process().errors(), HasSubstr("cannot read the checkpoint"));
}

TEST(HarnessCheckpoint, ThatFindsNoRoomIsAnError) {
  const TempTree folder;
  Subprocess run({"sh", "-c",
                  "ulimit -f 64; exec \"$0\" train steady --mb 1 --steps 3 --step-time 1ms "
                  "--checkpoint " +
                      folder.path("model.pt"),
                  harness_path()});

  EXPECT_EQ(run.wait(), 3);

  EXPECT_THAT(run.errors(), HasSubstr("model.pt: cannot write: File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(HarnessCheckpoint, KeepsALinkThatLeadsToIt) {
  const TempTree folder;
  folder.write("real.pt", "");
  folder.link("model.pt", folder.path("real.pt"));

  log_of({"--steps", "5", "--checkpoint", folder.path("model.pt")});

  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("model.pt")));
  EXPECT_THAT(log_of({"--steps", "6", "--resume", folder.path("real.pt")}),
              HasSubstr("at step 5\n"));
}

TEST(HarnessProgress, IsOneLineOfJsonPerStep) {
  const TempTree folder;
  const std::string file = folder.path("progress");
  Subprocess run({"sh", "-c",
                  harness_path() +
                      " train steady --mb 1 --steps 7 --step-time 1ms "
                      "--progress-fd 3 3>" +
                      file});

  EXPECT_EQ(run.wait(), 0);

  const std::string text = *read_file(file);
  std::string_view rest = text;
  int step = 0;
  while (const auto line = next_line(rest)) {
    const json progress = json::parse(*line);
    if (!progress.contains("step")) {
      continue;  // of the start, a phase or the end
    }
    EXPECT_EQ(progress["step"], ++step);
    EXPECT_GT(progress["loss"], 0);
    EXPECT_GT(progress["rss_bytes"], 1 << 20);
  }
  EXPECT_EQ(step, 7);
}

}  // namespace
}  // namespace tidemark::tests
