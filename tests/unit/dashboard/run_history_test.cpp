// SPDX-License-Identifier: Apache-2.0
#include "dashboard/run_history.h"
#include "common/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/dashboard/sample_dashboard.h"

namespace tidemark::dashboard {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using tests::dashboard_tick;
using tests::kTrainer;

TEST(RunHistory, KnowsTheNewestOfEverything) {
  const tests::SampleRun run = tests::sample_dashboard_run(100);

  EXPECT_DOUBLE_EQ(run.history.now_s(), 100.0);
  EXPECT_EQ(run.history.step(), 500);
  EXPECT_EQ(run.history.epoch(), 1);
  EXPECT_EQ(run.history.trainer(), kTrainer);
  EXPECT_THAT(run.history.processes(), SizeIs(22));
  EXPECT_EQ(run.history.first_tree_bytes(), 401 * kMiB);
}

TEST(RunHistory, ForgetsProcessesThatHaveGoneAndNamesThemOnce) {
  RunHistory history;
  history.add(dashboard_tick(0), kTrainer);
  Tick tick = dashboard_tick(1, 19);
  tick.events.push_back({1.0, EventKind::kExit, {219, 3}, "ended"});

  history.add(tick, kTrainer);

  EXPECT_FALSE(history.processes().contains(ProcessKey{219, 3}));
  ASSERT_THAT(history.marks(), testing::Not(testing::IsEmpty()));
  EXPECT_THAT(history.marks().back().text, HasSubstr("compile_worker 219"));
}

TEST(RunHistory, KnowsTheLimitThatHoldsNow) {
  RunHistory history;
  history.begin(tests::dashboard_info());
  history.set_limit(1024 * kMiB, "RLIMIT_AS");

  EXPECT_EQ(history.info().limit_bytes, 1024 * kMiB);
  EXPECT_EQ(history.info().limit_source, "RLIMIT_AS");
}

TEST(RunHistory, ManyBirthsAtOnceAreOneMarkThatCountsThemByRole) {
  RunHistory history;
  history.add(dashboard_tick(1, 0), kTrainer);
  Tick tick = dashboard_tick(2);
  const ProcessKey loader{300, 3};
  tick.processes.push_back(tests::sample_of(loader, 30));
  tick.new_processes.push_back(
      tests::record_of(loader, 110, Role::kDataloaderWorker, "python3 train.py"));
  tick.events.push_back({2.0, EventKind::kSpawn, loader, ""});
  for (int i = 0; i < tests::kWorkers; ++i) {
    const ProcessKey key{tests::kFirstWorker + i, 3};
    tick.new_processes.push_back(tests::record_of(key, 110, Role::kCompileWorker, "python3"));
    tick.events.push_back({2.0, EventKind::kSpawn, key, ""});
  }
  history.add(tick, kTrainer);
  Tick end = dashboard_tick(3, 0);
  end.events = tick.events;
  for (EventRecord& event : end.events) {
    event.kind = EventKind::kExit;
  }
  history.add(end, kTrainer);

  ASSERT_THAT(history.marks(), SizeIs(2));
  EXPECT_EQ(history.marks().front().text, "started: 20 compile_worker, 1 dataloader_worker");
  EXPECT_EQ(history.marks().back().text, "exited: 20 compile_worker, 1 dataloader_worker");
}

TEST(RunHistory, FewBirthsAtOnceAreNamed) {
  RunHistory history;
  history.add(dashboard_tick(0, 20), kTrainer);
  Tick tick = dashboard_tick(1, 17);
  for (const pid_t pid : {217, 218, 219}) {
    tick.events.push_back({1.0, EventKind::kExit, {pid, 3}, ""});
  }

  history.add(tick, kTrainer);

  EXPECT_EQ(history.marks().back().text,
            "exited: compile_worker 217, compile_worker 218, compile_worker 219");
}

TEST(RunHistory, KnowsAPhaseByItsNameHoweverLongItRuns) {
  RunHistory history;
  Tick tick = dashboard_tick(1, 0);
  const auto begin = [&](int second, const std::string& name) {
    tick.t_s = second;
    tick.markers = {{tick.t_s, kTrainer, MarkerKind::kPhaseBegin, 0, name},
                    {tick.t_s, kTrainer, MarkerKind::kPhaseEnd, 0, name}};
    history.add(tick, kTrainer);
  };
  begin(1, "setup");  // is forgotten, its name is not
  for (int second = 2; second < 5000; second += 2) {
    begin(second, "train");
    begin(second + 1, "eval");
  }

  for (const HistoryPhase& phase : history.phases()) {
    EXPECT_EQ(phase.kind, phase.name == "train" ? 1U : 2U);
  }
}

TEST(RunHistory, KeepsPhasesWithTheirEnds) {
  const tests::SampleRun run = tests::sample_dashboard_run(70);

  ASSERT_THAT(run.history.phases(), SizeIs(3));
  EXPECT_EQ(run.history.phases()[1].name, "eval");
  EXPECT_EQ(run.history.phases()[1].to_s, 59.0);
  EXPECT_EQ(run.history.phases()[2].to_s, std::nullopt);
}

TEST(RunHistory, AWeekTakesNoMoreRoomThanHours) {
  RunHistory history;
  constexpr int kWeek = 7 * 24 * 3600;
  Tick tick = dashboard_tick(0, 0);
  for (int second = 0; second < kWeek; second += 10) {
    tick.t_s = second;
    history.add(tick, kTrainer);
  }

  const auto points = history.timeline(0.0, kWeek);

  EXPECT_LT(points.size(), 13'000U);
  EXPECT_LT(points.front().t_s, 600.0);
  EXPECT_DOUBLE_EQ(points.back().t_s, kWeek - 10);
  EXPECT_THAT(history.timeline(kWeek - 60, kWeek), SizeIs(6)) << "what is recent is kept whole";
}

TEST(RunHistory, MergedSamplesKeepTheirPeaks) {
  RunHistory history;
  Tick tick = dashboard_tick(0, 0);
  for (int second = 0; second < 40'000; ++second) {
    tick.t_s = second;
    tick.tree.footprint_bytes = (second == 1000 ? 900 : 100) * kMiB;
    history.add(tick, kTrainer);
  }

  double highest = 0.0;
  for (const HistoryPoint& point : history.timeline(900.0, 1100.0)) {
    highest = std::max(highest, point.max_bytes);
  }

  EXPECT_DOUBLE_EQ(highest, 900.0 * kMiB);
}

TEST(RecentRate, IsThatOfTheLastMinute) {
  RecentRate rate;
  EXPECT_EQ(rate.bytes_per_s(), std::nullopt);
  for (int second = 0; second < 600; ++second) {
    rate.add(second, second < 300 ? 0.0 : (second - 300) * 10.0);
  }

  EXPECT_NEAR(rate.bytes_per_s().value(), 10.0, 0.5);
}

TEST(LiveJudge, FindsTheLeakAndItsCarrier) {
  const tests::SampleRun run = tests::sample_dashboard_run(400);

  ASSERT_TRUE(run.judged->verdict);
  EXPECT_EQ(run.judged->verdict->verdict, tracker::Verdict::kLeak);
  ASSERT_TRUE(run.judged->verdict->carrier);
  const std::size_t track = run.judged->verdict->tracks[*run.judged->verdict->carrier].track;
  EXPECT_EQ(run.judged->run.tracks[track].key, kTrainer);
}

// A wrapper sets it for the trainer, or somebody changes it under the running job.
TEST(LiveJudge, ForetellsByTheLimitThatHoldsNow) {
  LiveJudge judge;
  judge.begin(tests::dashboard_info());
  for (int second = 0; second <= 240; ++second) {
    judge.add(dashboard_tick(second));
  }
  judge.set_limit(1024 * kMiB, "RLIMIT_AS");

  const tracker::JudgedRun judged = tracker::judge_run(judge.tracks(), {});

  ASSERT_TRUE(judged.verdict);
  EXPECT_EQ(judged.verdict->answer().series.forecast.limit_bytes, 1024.0 * kMiB);
  EXPECT_EQ(judged.run.limit_source, "RLIMIT_AS");
}

TEST(LiveJudge, BelievesTheUserAboutWarmup) {
  LiveJudge judge;
  judge.begin(tests::dashboard_info());
  for (int second = 0; second <= 240; ++second) {
    Tick tick = dashboard_tick(second);
    tick.markers.clear();  // no epochs: the allowance is 30 minutes and 500 steps
    judge.add(tick);
  }

  const tracker::JudgedRun by_default = tracker::judge_run(judge.tracks(), {});
  tracker::JudgeOptions short_warmup;
  short_warmup.warmup.seconds = 20.0;
  const tracker::JudgedRun told = tracker::judge_run(judge.tracks(), short_warmup);

  EXPECT_EQ(by_default.verdict->verdict, tracker::Verdict::kGrowing);
  EXPECT_EQ(told.verdict->verdict, tracker::Verdict::kLeak);
}

TEST(LiveJudge, GivesAThousandProcessesFewCurves) {
  LiveJudge judge;
  judge.begin(tests::dashboard_info());
  for (int second = 0; second < 20; ++second) {
    judge.add(dashboard_tick(second, 1000));
  }

  const tracker::RunTracks run = judge.tracks();

  std::size_t processes = 0;
  bool has_trainer = false;
  for (const tracker::Track& track : run.tracks) {
    processes += track.kind == tracker::TrackKind::kProcess ? 1U : 0U;
    has_trainer = has_trainer || track.key == kTrainer;
  }
  EXPECT_LE(processes, LiveJudge::kMostProcesses + 1);
  EXPECT_TRUE(has_trainer);
}

TEST(LiveJudge, TakesAtMostAHundredthOfTheTime) {
  EXPECT_DOUBLE_EQ(next_judgement_s(10.0, 0.001), 12.0);
  EXPECT_DOUBLE_EQ(next_judgement_s(10.0, 0.5), 60.0);
}

}  // namespace
}  // namespace tidemark::dashboard
