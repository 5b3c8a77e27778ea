// SPDX-License-Identifier: Apache-2.0
#include "live/attach_targets.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::live {
namespace {

using monitor::ProcessFacts;
using testing::HasSubstr;

ProcessFacts process(pid_t pid, pid_t parent, std::vector<std::string> argv) {
  ProcessFacts facts;
  facts.key = {pid, static_cast<std::uint64_t>(pid)};
  facts.ppid = parent;
  facts.comm = argv.front();
  facts.argv = std::move(argv);
  facts.threads = 1;
  facts.footprint_bytes = 4U << 20U;
  return facts;
}

TEST(AttachTargets, TakeTheJobBelowShells) {
  const std::vector<ProcessFacts> table{process(10, 1, {"/bin/sh", "run.sh"}),
                                        process(11, 10, {"bash", "-c", "python3 job.py; true"}),
                                        process(12, 11, {"python3", "job.py"}),
                                        process(13, 12, {"gcc", "-c", "kernel.c"}),
                                        process(20, 1, {"python3", "other.py"})};

  EXPECT_EQ(*process_at_work(table, 10), 12);
  EXPECT_EQ(*process_at_work(table, 12), 12);
}

TEST(AttachTargets, TakeAShellThatRunsNothing) {
  const std::vector<ProcessFacts> table{process(10, 1, {"bash"})};

  EXPECT_EQ(*process_at_work(table, 10), 10);
}

TEST(AttachTargets, DoNotChooseBetweenSeveralJobsOfAShell) {
  const std::vector<ProcessFacts> table{process(10, 1, {"/bin/sh", "run.sh"}),
                                        process(11, 10, {"python3", "one.py"}),
                                        process(12, 10, {"python3", "two.py"})};

  const auto chosen = process_at_work(table, 10);

  ASSERT_FALSE(chosen);
  EXPECT_THAT(chosen.error().what, HasSubstr("pid 10 (/bin/sh run.sh) only runs others: "
                                             "pid 11 (python3 one.py), pid 12 (python3 two.py)"));
}

// As `pgrep -f one.py` prints it: the shell has the name of the script in its command line, too.
TEST(AttachTargets, AreTheNamedOnesBelowAShellThatRunsSeveral) {
  const std::vector<ProcessFacts> table{
      process(10, 1, {"/bin/sh", "-c", "python3 one.py & python3 two.py"}),
      process(11, 10, {"python3", "one.py"}), process(12, 10, {"python3", "two.py"})};

  EXPECT_THAT(*processes_at_work(table, 10, std::vector<pid_t>{10, 11}), testing::IsEmpty());
  EXPECT_THAT(*processes_at_work(table, 11, std::vector<pid_t>{10, 11}), testing::ElementsAre(11));
  EXPECT_FALSE(processes_at_work(table, 10, std::vector<pid_t>{10}));
  EXPECT_FALSE(processes_at_work(table, 10, std::vector<pid_t>{10, 4711}));
}

TEST(AttachTargets, WantRanksAlwaysAndMoreOnRequest) {
  const AttachScope usual;
  AttachScope with_workers;
  with_workers.role = Role::kDataloaderWorker;
  AttachScope all;
  all.all = true;

  EXPECT_TRUE(is_wanted(Role::kRank, usual));
  EXPECT_FALSE(is_wanted(Role::kDataloaderWorker, usual));
  EXPECT_TRUE(is_wanted(Role::kDataloaderWorker, with_workers));
  EXPECT_TRUE(is_wanted(Role::kRank, with_workers));
  EXPECT_TRUE(is_wanted(Role::kOther, all));
}

}  // namespace
}  // namespace tidemark::live
