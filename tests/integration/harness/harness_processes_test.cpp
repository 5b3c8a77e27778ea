// SPDX-License-Identifier: Apache-2.0
// The processes around the trainer: what they look like, what they hold, and that they end.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
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
using ::testing::SizeIs;

std::string command_line(pid_t pid) {
  const auto file = read_file("/proc/" + std::to_string(pid) + "/cmdline");
  std::string text = file ? *file : "";
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

double ppid_of(pid_t pid) { return proc_mib(pid, "status", "PPid:") * 1024; }

TEST(HarnessCompileWorkers, LookLikeThoseOfTorchAndShareHalfOfTheirMemory) {
  HarnessRun run({"compile-workers", "3", "--worker-mb", "24", "--steps", "60"});
  ASSERT_TRUE(run.wait_for_training());

  const auto pids = run.pids("compile_worker");

  ASSERT_THAT(pids, SizeIs(4));  // the sidecar first
  EXPECT_EQ(run.truth()["workers"], 3);
  for (const pid_t pid : pids) {
    EXPECT_THAT(command_line(pid), HasSubstr("/torch/_inductor/compile_worker/__main__.py"));
    EXPECT_THAT(command_line(pid), HasSubstr("--parent=" + std::to_string(run.process().pid())));
    EXPECT_EQ(*read_file("/proc/" + std::to_string(pid) + "/comm"), "python3\n");
  }
  EXPECT_EQ(ppid_of(pids[0]), run.process().pid());
  EXPECT_EQ(ppid_of(pids[1]), pids[0]);
  EXPECT_NEAR(proc_mib(pids[1], "status", "RssAnon:"), 24, 2);
  EXPECT_NEAR(proc_mib(pids[1], "smaps_rollup", "Pss_Anon:"), 12 + 12.0 / 4, 2);
}

TEST(HarnessCompileWorkers, QuitHalfwayWhenTheyAreToldTo) {
  HarnessRun run({"compile-workers", "2", "--worker-mb", "8", "--quiesce", "--steps", "60",
                  "--step-time", "20ms", "--log-every", "1"});
  run.process().read_until("compile workers quit");

  const auto pids = run.pids("compile_worker");

  ASSERT_THAT(pids, SizeIs(3));
  EXPECT_TRUE(is_running(pids[0]));
  EXPECT_THAT(still_running({pids[1], pids[2]}), IsEmpty());
  EXPECT_EQ(run.finish(), 0);
}

TEST(HarnessCompileWorkers, AreNotStartedWhenCompilingIsDisabled) {
  HarnessRun run({"compile-workers", "3", "--steps", "2"}, {"TORCH_COMPILE_DISABLE=1"});

  EXPECT_EQ(run.finish(), 0);

  EXPECT_THAT(run.pids("compile_worker"), IsEmpty());
  EXPECT_TRUE(run.truth()["workers"].is_null());
  EXPECT_THAT(run.process().output(), HasSubstr("TORCH_COMPILE_DISABLE=1: no compile workers"));
}

TEST(HarnessCompileWorkers, EndWithTheTrainer) {
  HarnessRun run({"compile-workers", "3", "--worker-mb", "8", "--steps", "3"});

  EXPECT_EQ(run.finish(), 0);

  EXPECT_THAT(still_running(run.pids("compile_worker")), IsEmpty());
}

TEST(HarnessDataloaderWorkers, CopyTheSharedDatasetWithoutGrowingInRss) {
  HarnessRun run({"dataloader-cow", "--workers", "2", "--mb", "40", "--steps", "100", "--step-time",
                  "20ms", "--log-every", "1"});
  ASSERT_TRUE(run.wait_for_training());
  const auto pids = run.pids("dataloader_worker");
  ASSERT_THAT(pids, SizeIs(2));
  const double rss_before = proc_mib(pids[0], "status", "RssAnon:");
  const double own_before = proc_mib(pids[0], "smaps_rollup", "Private_Dirty:");

  run.process().read_until("Step 50 ");

  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(*read_file("/proc/" + std::to_string(pids[0]) + "/comm"), "pt_data_worker\n");
  EXPECT_NEAR(proc_mib(pids[0], "status", "RssAnon:"), rss_before, 2);
  EXPECT_GT(proc_mib(pids[0], "smaps_rollup", "Private_Dirty:") - own_before, 40 * 0.7);
  EXPECT_EQ(run.finish(), 0);
  EXPECT_EQ(run.truth()["class"], "warmup");
  EXPECT_THAT(still_running(pids), IsEmpty());
}

TEST(HarnessWrapper, IsASmallParentThatIsNotTheTrainer) {
  HarnessRun run({"steady", "--wrapper", "--mb", "40", "--steps", "100", "--step-time", "20ms"});
  ASSERT_TRUE(run.wait_for_training());

  const auto truth = run.truth();

  EXPECT_EQ(truth["wrapper_pid"], run.process().pid());
  ASSERT_THAT(run.pids("trainer"), SizeIs(1));
  const pid_t trainer = run.pids("trainer")[0];
  EXPECT_EQ(ppid_of(trainer), run.process().pid());
  EXPECT_THAT(command_line(run.process().pid()), HasSubstr("uv run tidemark-harness train"));
  EXPECT_LT(proc_mib(run.process().pid(), "status", "VmRSS:"), 10);
  EXPECT_GT(proc_mib(trainer, "status", "RssAnon:"), 40);
}

TEST(HarnessWrapper, PassesASignalAndTheExitCodeOn) {
  HarnessRun run({"steady", "--wrapper", "--mb", "1", "--steps", "10000"});
  ASSERT_TRUE(run.wait_for_training());

  run.process().signal(SIGTERM);

  EXPECT_EQ(run.finish(), 0);
  EXPECT_EQ(run.truth()["complete"], true);
}

TEST(HarnessShmLeak, LeavesSegmentsThatNobodyHoldsAndRemovesThemAtTheEnd) {
  HarnessRun run({"leak", "--cause", "shm", "--mb-per-step", "1", "--from-step", "10", "--steps",
                  "60", "--step-time", "20ms", "--log-every", "1"});
  run.process().read_until("Step 40 ");

  const pid_t trainer = run.process().pid();
  const auto segments = segments_of(trainer);

  EXPECT_GE(segments.size(), 29U);
  EXPECT_LT(proc_mib(trainer, "status", "RssShmem:"), 8);
  EXPECT_EQ(run.finish(), 0);
  EXPECT_THAT(segments_of(trainer), IsEmpty());
  EXPECT_EQ(run.truth()["where"]["kind"], "shm");
}

TEST(HarnessShmLeak, KeepsItsSegmentsWhenAskedTo) {
  HarnessRun run({"leak", "--cause", "shm", "--mb-per-step", "0.1", "--from-step", "0", "--steps",
                  "5", "--step-time", "1ms", "--keep-shm"});
  const pid_t trainer = run.process().pid();

  EXPECT_EQ(run.finish(), 0);

  const auto segments = segments_of(trainer);
  EXPECT_THAT(segments, SizeIs(5));
  for (const std::string& segment : segments) {
    ::unlink(segment.c_str());
  }
}

}  // namespace
}  // namespace tidemark::tests
