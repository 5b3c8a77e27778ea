// SPDX-License-Identifier: Apache-2.0
#include "live/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/exit_code.h"
#include "recording/run_writer.h"
#include "tests/support/fake_watch_system.h"
#include "tests/support/ledgers.h"
#include "tests/support/temp_tree.h"

namespace tidemark::live {
namespace {

using testing::HasSubstr;
using tests::FakeWatchSystem;
using tests::kLedgerMiB;

constexpr pid_t kJob = 3'900'001;

class RunExplainTest : public testing::Test {
 protected:
  RunExplainTest() {
    options.watch.json = true;
    options.watch.target.pids = {kJob};
    system.put(kJob, 100);
  }

  // A ledger with 10 MiB more each time.
  ReadLedger read() {
    return [this](const ProcessKey& key, double t_s) -> Result<MemoryLedger> {
      reads.emplace_back(key.pid, t_s);
      if (error) {
        return *error;
      }
      MemoryLedger ledger = tests::ledger_of(
          key.pid, t_s, {tests::ledger_row(LedgerKind::kAnonymous, 100 + 10 * reads.size())});
      ledger.key = key;
      return ledger;
    };
  }
  nlohmann::json answer() const { return nlohmann::json::parse(system.stdout_text()); }

  FakeWatchSystem system;
  ExplainOptions options;
  std::vector<std::pair<pid_t, double>> reads;
  std::optional<Error> error;
};

TEST_F(RunExplainTest, LooksOnceAndAnswersAtOnce) {
  EXPECT_EQ(run_explain(options, &system, read()), kExitOk) << system.stderr_text();

  ASSERT_EQ(reads.size(), 1U);
  EXPECT_LT(system.now_s(), 1.0);
  EXPECT_EQ(answer()["processes"][0]["looks"], 1);
  EXPECT_EQ(answer()["processes"][0]["pid"], kJob);
}

TEST_F(RunExplainTest, LooksAgainWhenItIsAskedTo) {
  options.every_ns = 5 * kNsPerSecond;

  EXPECT_EQ(run_explain(options, &system, read()), kExitOk) << system.stderr_text();

  ASSERT_EQ(reads.size(), 2U);
  EXPECT_GE(reads[1].second - reads[0].second, 4.5);
  EXPECT_EQ(answer()["processes"][0]["rows"][0]["rss_growth_bytes"], 10 * kLedgerMiB);
  EXPECT_THAT(system.stderr_text(), HasSubstr("look 1 of 2"));
}

TEST_F(RunExplainTest, TakesTheLastLookWhenItIsTold) {
  options.looks = 5;
  options.every_ns = 100 * kNsPerSecond;
  system.at(3.0, [this] { system.deliver(SIGINT); });

  EXPECT_EQ(run_explain(options, &system, read()), kExitOk) << system.stderr_text();

  EXPECT_EQ(reads.size(), 2U);
  EXPECT_LT(system.now_s(), 10.0);
}

TEST_F(RunExplainTest, OfAProcessThatExitsInBetweenSaysSo) {
  options.every_ns = 50 * kNsPerSecond;
  system.at(4.5, [this] { system.end(kJob); });

  EXPECT_EQ(run_explain(options, &system, read()), kExitOk) << system.stderr_text();

  EXPECT_EQ(reads.size(), 1U);
  EXPECT_EQ(answer()["notes"][0], "there was one look only: what grows takes two");
  EXPECT_THAT(answer()["answer"].get<std::string>(), testing::Not(HasSubstr("Next: ")));
}

TEST_F(RunExplainTest, ExplainsTheWholeTree) {
  system.put(kJob + 1, 50, kJob);
  system.put(kJob + 2, 60, kJob);

  EXPECT_EQ(run_explain(options, &system, read()), kExitOk) << system.stderr_text();

  EXPECT_EQ(answer()["tree"]["processes"], 3);
}

TEST_F(RunExplainTest, RecordsAndShowsTheSameAgain) {
  const tests::TempTree dir;
  options.watch.output = dir.path("run.tidemark");
  options.every_ns = 2 * kNsPerSecond;
  ASSERT_EQ(run_explain(options, &system, read()), kExitOk) << system.stderr_text();
  ExplainOptions again;
  again.input = options.watch.output;
  again.watch.json = true;

  testing::internal::CaptureStdout();
  EXPECT_EQ(run_explain(again), kExitOk);
  const nlohmann::json shown = nlohmann::json::parse(testing::internal::GetCapturedStdout());

  EXPECT_EQ(shown["processes"], answer()["processes"]);
  EXPECT_EQ(shown["tree"], answer()["tree"]);
}

TEST_F(RunExplainTest, OfARecordingWithoutLedgersSaysHowToGetOne) {
  const tests::TempTree dir;
  ExplainOptions again;
  again.input = dir.path("run.tidemark");
  auto writer = recording::RunWriter::create(again.input);
  ASSERT_TRUE(writer && (*writer)->begin({}) && (*writer)->add({}) && (*writer)->end(1.0));

  testing::internal::CaptureStderr();
  EXPECT_EQ(run_explain(again), kExitTarget);

  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("tidemark explain --pid PID -o"));
}

TEST_F(RunExplainTest, SaysWhyItMayNotRead) {
  error = Error{Errc::kPermission, "/proc/3900001/smaps: Permission denied", EACCES};

  EXPECT_EQ(run_explain(options, &system, read()), kExitTarget);

  EXPECT_THAT(system.stderr_text(),
              HasSubstr("cannot read the memory map of pid 3900001: /proc/3900001/smaps"));
  EXPECT_THAT(system.stderr_text(), HasSubstr("hint: "));
  EXPECT_EQ(system.stdout_text(), "");
}

TEST_F(RunExplainTest, LeavesOutAProcessThatExitsMeanwhile) {
  system.put(kJob + 1, 50, kJob);
  const ReadLedger all = read();

  EXPECT_EQ(run_explain(options, &system,
                        [&](const ProcessKey& key, double t_s) -> Result<MemoryLedger> {
                          if (key.pid == kJob + 1) {
                            return Error{Errc::kGone, "it has ended"};
                          }
                          return all(key, t_s);
                        }),
            kExitOk)
      << system.stderr_text();

  EXPECT_EQ(answer()["tree"]["processes"], 1);
  EXPECT_TRUE(answer()["notes"].empty());
}

TEST_F(RunExplainTest, NamesAProcessThatRefuses) {
  system.put(kJob + 1, 50, kJob);
  const ReadLedger all = read();

  EXPECT_EQ(run_explain(options, &system,
                        [&](const ProcessKey& key, double t_s) -> Result<MemoryLedger> {
                          if (key.pid == kJob + 1) {
                            return Error{Errc::kPermission, "Permission denied"};
                          }
                          return all(key, t_s);
                        }),
            kExitOk);

  EXPECT_EQ(answer()["notes"][0], "pid 3900002: Permission denied");
}

TEST_F(RunExplainTest, LooksAtACommandWhenItHasLoaded) {
  options.watch.target = {};
  options.watch.target.command = {"train"};
  options.every_ns = 3 * kNsPerSecond;
  options.looks = 1;
  system.put(FakeWatchSystem::kCommandPid, 100);
  system.at(30.0, [this] { system.end_command(0); });

  EXPECT_EQ(run_explain(options, &system, read()), 0) << system.stderr_text();

  ASSERT_EQ(reads.size(), 1U);
  EXPECT_GE(reads[0].second, 2.5);
}

TEST_F(RunExplainTest, SaysThatACommandEndedTooSoon) {
  options.watch.target = {};
  options.watch.target.command = {"train"};
  system.put(FakeWatchSystem::kCommandPid, 100);
  system.at(1.0, [this] { system.end_command(3 << 8); });

  EXPECT_EQ(run_explain(options, &system, read()), 3);

  EXPECT_TRUE(reads.empty());
  EXPECT_THAT(system.stderr_text(), HasSubstr("it ended before its memory was looked at"));
}

}  // namespace
}  // namespace tidemark::live
