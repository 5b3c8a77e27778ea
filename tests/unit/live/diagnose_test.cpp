// SPDX-License-Identifier: Apache-2.0
#include "live/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "common/exit_code.h"
#include "tests/support/fake_watch_system.h"
#include "tests/support/made_looks.h"
#include "tests/support/temp_tree.h"

namespace tidemark::live {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using tests::FakeWatchSystem;
using tests::MadeLooks;

constexpr pid_t kTrainer = 3'900'002;

// A trainer that grows by a MiB each second, and looks at its objects that are made up.
class RunDiagnoseTest : public testing::Test {
 protected:
  RunDiagnoseTest() {
    options.watch.pss = monitor::PssMode::kOff;
    options.watch.json = true;
    options.watch.target.pids = {kTrainer};
    options.injects = false;
    system.put(kTrainer, 100);
    for (int second = 1; second < 400; ++second) {
      system.at(second + 0.5, [this, second] {
        if (!is_over) {
          system.put(kTrainer, 100 + static_cast<std::uint64_t>(second));
        }
      });
    }
  }

  // Looks take no time of the run.
  void wait_for_looks(std::initializer_list<std::pair<double, std::size_t>> at) {
    for (const auto& [t_s, count] : at) {
      system.at(t_s, [this, count = count] { looks.wait_for(count); });
    }
  }
  int run() {
    return run_diagnose(options, &system, looks.make(), [this](const ProcessKey& key, double t_s) {
      MemoryLedger ledger;
      ledger.key = key;
      ledger.t_s = t_s;
      return ledger_error ? Result<MemoryLedger>(*ledger_error) : Result<MemoryLedger>(ledger);
    });
  }
  nlohmann::json answer() const { return nlohmann::json::parse(system.stdout_text()); }
  // Why this was not looked at; "" where it was.
  static std::string refused(const nlohmann::json& answer, const std::string& what) {
    for (const nlohmann::json& each : answer["refused"]) {
      if (each["what"] == what) {
        return each["why"];
      }
    }
    return "";
  }

  FakeWatchSystem system;
  MadeLooks looks;
  std::optional<Error> ledger_error;
  DiagnoseOptions options;
  bool is_over = false;
};

TEST_F(RunDiagnoseTest, WatchesForTwoMinutesWithThreeLooks) {
  wait_for_looks({{5.0, 1}, {60.0, 2}, {105.0, 3}});

  EXPECT_EQ(run(), kExitUndetermined) << system.stderr_text();

  const nlohmann::json json = answer();
  EXPECT_NEAR(json["watched_s"].get<double>(), 120.0, 1.5);
  EXPECT_EQ(json["verdict"]["verdict"], "growing");
  ASSERT_EQ(json["owners"]["looks"].size(), 3U);
  EXPECT_LT(json["owners"]["looks"][0]["t_s"].get<double>(), 10.0);
  EXPECT_GE(json["owners"]["looks"][2]["t_s"].get<double>(), 90.0);
  EXPECT_EQ(json["owners"]["owners"][0]["path"], "__main__.cache");
  EXPECT_THAT(json["answer"].get<std::string>(), HasSubstr("__main__.cache holds"));
  EXPECT_TRUE(json["lines"].is_null());
  EXPECT_THAT(refused(json, "lines"), StartsWith("--no-inject"));
}

TEST_F(RunDiagnoseTest, EndsWhenTheVerdictIsClear) {
  options.judge.warmup = *tracker::parse_warmup("5s");
  wait_for_looks({{5.0, 1}, {75.0, 2}, {86.0, 3}});

  EXPECT_EQ(run(), kExitLeak) << system.stderr_text();

  EXPECT_LT(answer()["watched_s"].get<double>(), 110.0);
  EXPECT_EQ(answer()["verdict"]["verdict"], "leak");
  EXPECT_EQ(answer()["owners"]["looks"].size(), 3U);
}

TEST_F(RunDiagnoseTest, GivesTheAnswerSoFarWhenItIsTold) {
  wait_for_looks({{5.0, 1}});
  system.at(30.2, [this] { system.deliver(SIGINT); });

  EXPECT_EQ(run(), kExitUndetermined);

  EXPECT_NEAR(answer()["watched_s"].get<double>(), 30.2, 1.0);
  EXPECT_EQ(answer()["verdict"]["verdict"], "growing");
  EXPECT_EQ(answer()["owners"]["looks"].size(), 1U);
}

TEST_F(RunDiagnoseTest, ReadsTheMemoryMapAtTheBeginningAndAtTheEnd) {
  system.at(30.2, [this] { system.deliver(SIGINT); });

  run();

  const nlohmann::json ledger = answer()["ledger"]["processes"][0];
  EXPECT_EQ(ledger["pid"], kTrainer);
  EXPECT_EQ(ledger["looks"], 2);
  EXPECT_GT(ledger["seconds"].get<double>(), 25.0);
}

TEST_F(RunDiagnoseTest, SaysWhyThereIsNoLedger) {
  ledger_error = Error{Errc::kPermission, "cannot read its map"};
  system.at(10.2, [this] { system.deliver(SIGINT); });

  run();

  EXPECT_TRUE(answer()["ledger"].is_null());
  EXPECT_THAT(refused(answer(), "ledger"), HasSubstr("cannot read its map"));
}

// There is no process of this number: nothing is done to anybody.
TEST_F(RunDiagnoseTest, IntervenesOnlyWhenItIsAskedToAndAtTheEnd) {
  options.intervenes = true;
  options.watch.duration_ns = 20 * kNsPerSecond;
  wait_for_looks({{3.5, 1}, {11.5, 2}, {19.5, 3}});

  EXPECT_EQ(run(), kExitUndetermined);

  EXPECT_NE(refused(answer(), "interventions"), "");
  EXPECT_NEAR(answer()["watched_s"].get<double>(), 20.0, 1.5);
  EXPECT_EQ(answer()["owners"]["looks"].size(), 3U);
}

TEST_F(RunDiagnoseTest, GivesThePageWithoutLinesWhereItCannotAttach) {
  options.injects = true;
  wait_for_looks({{5.0, 1}});
  system.at(20.2, [this] { system.deliver(SIGINT); });

  EXPECT_EQ(run(), kExitUndetermined);

  EXPECT_THAT(refused(answer(), "lines"), HasSubstr(std::to_string(kTrainer)));
  EXPECT_EQ(answer()["verdict"]["verdict"], "growing");
}

TEST_F(RunDiagnoseTest, GivesThePageWithoutOwnersWhereItMayNotLook) {
  looks.change = [](const HeapFacts&) {
    return Result<HeapFacts>(Error{Errc::kUnsupported, "it has no memory"});
  };
  wait_for_looks({{5.0, 1}});

  EXPECT_EQ(run(), kExitUndetermined);

  EXPECT_TRUE(answer()["owners"].is_null());
  EXPECT_THAT(refused(answer(), "owners"),
              HasSubstr("cannot look at the heap of pid 3900002: it has no memory"));
  EXPECT_EQ(answer()["verdict"]["verdict"], "growing");
}

TEST_F(RunDiagnoseTest, SaysThatThereIsNoPython) {
  looks.change = [](HeapFacts facts) {
    facts.looks[0].look.objects = 0;
    facts.looks[0].look.problem = "there is no Python in it";
    return Result<HeapFacts>(std::move(facts));
  };
  wait_for_looks({{5.0, 1}});

  run();

  EXPECT_THAT(refused(answer(), "owners"), HasSubstr("there is no Python"));
}

TEST_F(RunDiagnoseTest, ShowsTheSamePageOfItsRecording) {
  const tests::TempTree dir;
  options.watch.output = dir.path("run.tidemark");
  wait_for_looks({{5.0, 1}, {60.0, 2}, {105.0, 3}});
  EXPECT_EQ(run(), kExitUndetermined) << system.stderr_text();
  const nlohmann::json live = answer();
  DiagnoseOptions again;
  again.input = options.watch.output;
  again.watch.json = true;

  testing::internal::CaptureStdout();
  EXPECT_EQ(run_diagnose(again), kExitUndetermined);
  const auto shown = nlohmann::json::parse(testing::internal::GetCapturedStdout());

  EXPECT_EQ(shown["answer"], live["answer"]);
  EXPECT_EQ(shown["deciding"], live["deciding"]);
  EXPECT_EQ(shown["owners"]["owners"], live["owners"]["owners"]);
  EXPECT_EQ(shown["refused"], live["refused"]);
}

TEST_F(RunDiagnoseTest, PrintsLinesAndThenThePage) {
  options.watch.json = false;
  wait_for_looks({{5.0, 1}, {60.0, 2}, {105.0, 3}});

  run();

  EXPECT_THAT(system.stdout_text(), StartsWith("00:00:04  "));
  EXPECT_THAT(system.stdout_text(), HasSubstr("\n00:01:54  "));
  EXPECT_THAT(system.stdout_text(), HasSubstr("\n\nLIKELY LEAK "));
  EXPECT_THAT(system.stdout_text(), HasSubstr("\nwho holds it   __main__.cache: "));
  EXPECT_THAT(system.stdout_text(), HasSubstr("tidemark track --pid 3900002 "));
}

TEST_F(RunDiagnoseTest, GivesNoCommandForAJobThatHasExited) {
  options.watch.json = false;
  wait_for_looks({{5.0, 1}});
  system.at(45.0, [this] {
    is_over = true;
    system.end(kTrainer);
  });

  run();

  EXPECT_THAT(system.stdout_text(), HasSubstr("\n\nLIKELY LEAK "));
  EXPECT_THAT(system.stdout_text(), Not(HasSubstr("--pid 3900002")));
}

TEST_F(RunDiagnoseTest, FailsWithACommandThatFails) {
  options.watch.target.pids.clear();
  options.watch.target.command = {"/bin/false"};
  options.watch.step_regex = kNoStepRegex;
  system.at(2.5, [&] { system.end_command(1 << 8); });

  EXPECT_EQ(run(), kExitTarget);
}

TEST(DiagnosisOfARecording, SaysWhatItDoesNotHave) {
  const tests::TempTree dir;
  std::string rows = "t_s,rss_mb\n";
  for (int i = 0; i < 30; ++i) {
    rows += std::to_string(i) + "," + std::to_string(100 + i) + "\n";
  }
  dir.write("a.csv", rows);
  DiagnoseOptions options;
  options.input = dir.path("a.csv");

  testing::internal::CaptureStdout();
  const int code = run_diagnose(options);
  const std::string page = testing::internal::GetCapturedStdout();

  EXPECT_EQ(code, kExitUndetermined);
  EXPECT_THAT(page, HasSubstr("owners: the recording has no looks at a heap"));
  EXPECT_THAT(page, HasSubstr("lines: the recording has no call stacks"));
}

}  // namespace
}  // namespace tidemark::live
