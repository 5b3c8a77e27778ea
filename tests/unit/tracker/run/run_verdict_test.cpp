// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/run_verdict.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/tracker/judged_run.h"

namespace tidemark::tracker {
namespace {

using tests::Actor;
using tests::advised;
using tests::carrier;
using tests::flat;
using tests::judged;
using tests::kGB;
using tests::kHour;
using tests::kMB;
using tests::ramp;
using tests::reading_of;
using tests::SyntheticRun;
using tests::trainer;
using tests::where;
using tests::worker;

TEST(RunVerdict, HasNoAnswerWithoutASample) {
  EXPECT_FALSE(judge_run(RunTracks{}, Options{}, std::nullopt).has_value());
}

TEST(RunVerdict, SeesTheWarmupOfATrainerBetweenWrapperAndCompileWorkers) {
  Actor wrapper = worker(Role::kWrapper, flat(20 * kMB));
  const RunTracks run = SyntheticRun(kHour, 5.0)
                            .add(wrapper)
                            .add(trainer(ramp(3 * kGB, 17 * kGB, 60, 700)))
                            .add(20, worker(Role::kCompileWorker, flat(280 * kMB), flat(15 * kMB)))
                            .play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kWarmup);
  EXPECT_EQ(where(run, verdict).kind, TrackKind::kTree);
  ASSERT_NE(carrier(run, verdict), nullptr);
  EXPECT_EQ(carrier(run, verdict)->role, Role::kTrainer);
  EXPECT_GT(verdict.carrier_share, 0.9);
  EXPECT_EQ(verdict.held_as, HeldAs::kPrivate);
}

TEST(RunVerdict, TellsCompileWorkersAsOverheadWithBothFigures) {
  const RunTracks run = SyntheticRun(kHour, 5.0)
                            .add(trainer(flat(8 * kGB)))
                            .add(20, worker(Role::kCompileWorker, flat(280 * kMB), flat(15 * kMB)))
                            .play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kStable);
  ASSERT_EQ(verdict.overheads.size(), 1U);
  EXPECT_EQ(verdict.overheads[0].role, Role::kCompileWorker);
  EXPECT_EQ(verdict.overheads[0].processes, 20U);
  EXPECT_NEAR(verdict.overheads[0].rss_bytes, 5.6 * kGB, 0.1 * kGB);
  ASSERT_TRUE(verdict.overheads[0].pss_bytes.has_value());
  EXPECT_NEAR(*verdict.overheads[0].pss_bytes, 0.3 * kGB, 0.05 * kGB);
  EXPECT_NEAR(*verdict.overheads[0].footprint_bytes, 0.3 * kGB, 0.05 * kGB);
  EXPECT_EQ(advised(verdict), std::set<std::string>{"compile_workers"});
}

TEST(RunVerdict, TakesAPoolThatQuitsAndReturnsForAnEvent) {
  SyntheticRun script(kHour, 5.0);
  script.add(trainer(flat(4 * kGB)));
  for (const auto& [started_s, exited_s] : {std::pair(0.0, 59.0), std::pair(900.0, 1200.0),
                                            std::pair(1500.0, 1560.0), std::pair(2400.0, 2600.0)}) {
    Actor pool = worker(Role::kCompileWorker, flat(280 * kMB), flat(60 * kMB));
    pool.started_s = started_s;
    pool.exited_s = exited_s;
    script.add(20, pool);
  }
  const RunTracks run = script.play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kStable);
  const TrackVerdict* tree = reading_of(run, verdict, TrackKind::kTree, Role::kOther);
  ASSERT_NE(tree, nullptr);
  EXPECT_TRUE(tree->churn_removed);
  EXPECT_TRUE(advised(verdict).contains("compile_pool_returns"));
}

TEST(RunVerdict, StillSeesTheSpikesOfATrainerBesideAPoolThatReturns) {
  SyntheticRun script(kHour, 5.0);
  script.add(trainer([](double t_s) {
    const double in_period = std::fmod(t_s, 300.0);
    return in_period > 250.0 && in_period < 280.0 ? 7 * kGB : 4 * kGB;
  }));
  for (const double started_s : {0.0, 900.0, 2000.0}) {
    Actor pool = worker(Role::kCompileWorker, flat(280 * kMB), flat(60 * kMB));
    pool.started_s = started_s;
    pool.exited_s = started_s + 60.0;
    script.add(20, pool);
  }

  EXPECT_EQ(judged(script.play()).verdict, Verdict::kSpikes);
}

TEST(RunVerdict, DoesNotTakeWorkersThatComeLateForGrowth) {
  SyntheticRun script(2 * kHour, 10.0);
  script.add(trainer(flat(4 * kGB)));
  for (const double started_s : {4000.0, 5000.0, 6500.0}) {
    Actor loader = worker(Role::kDataloaderWorker, flat(500 * kMB));
    loader.started_s = started_s;
    script.add(loader);
  }
  const RunTracks run = script.play();

  const RunVerdict verdict = judged(run);

  EXPECT_LE(verdict.verdict, Verdict::kWarmup);
}

TEST(RunVerdict, CallsProcessesThatPileUpALeak) {
  SyntheticRun script(3 * kHour, 10.0);
  script.add(trainer(flat(4 * kGB)));
  for (int i = 0; i < 138; ++i) {
    Actor loader = worker(Role::kDataloaderWorker, flat(60 * kMB));
    loader.started_s = 300.0 + i * 75.0;
    script.add(loader);
  }
  const RunTracks run = script.play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kLeak);
  ASSERT_NE(carrier(run, verdict), nullptr);
  EXPECT_EQ(carrier(run, verdict)->role, Role::kDataloaderWorker);
  EXPECT_EQ(verdict.held_as, HeldAs::kProcesses);
  EXPECT_TRUE(advised(verdict).contains("processes_pile_up"));
}

TEST(RunVerdict, SeesALeakOfTheTrainerWhileWorkersComeAndGo) {
  SyntheticRun script(3 * kHour, 10.0);
  script.add(trainer(ramp(4 * kGB, 7 * kGB, 2000, 20000)));
  for (int epoch = 0; epoch < 18; ++epoch) {
    Actor loader = worker(Role::kDataloaderWorker, flat(400 * kMB));
    loader.started_s = epoch * 600.0;
    loader.exited_s = epoch * 600.0 + 560.0;
    script.add(4, loader);
  }
  const RunTracks run = script.play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kLeak);
  const bool named =
      where(run, verdict).role == Role::kTrainer ||
      (carrier(run, verdict) != nullptr && carrier(run, verdict)->role == Role::kTrainer);
  EXPECT_TRUE(named);
}

TEST(RunVerdict, NamesTheProcessThatCameWithAllItsMemory) {
  Actor late = trainer(flat(5 * kGB));
  late.started_s = 400.0;
  const RunTracks run =
      SyntheticRun(2 * kHour, 10.0).add(worker(Role::kLauncher, flat(200 * kMB))).add(late).play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kWarmup);
  ASSERT_NE(carrier(run, verdict), nullptr);
  EXPECT_EQ(carrier(run, verdict)->role, Role::kTrainer);
}

TEST(RunVerdict, NamesTheRoleThatSpikes) {
  const RunTracks run =
      SyntheticRun(2 * kHour, 5.0)
          .add(trainer(flat(6 * kGB)))
          .add(4, worker(Role::kDataloaderWorker,
                         [](double t_s) {
                           return std::fmod(t_s, 600.0) > 560.0 ? 2 * kGB : 0.3 * kGB;
                         }))
          .play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kSpikes);
  ASSERT_NE(carrier(run, verdict), nullptr);
  EXPECT_EQ(carrier(run, verdict)->kind, TrackKind::kRole);
  EXPECT_EQ(carrier(run, verdict)->role, Role::kDataloaderWorker);
  EXPECT_GT(verdict.carrier_share, 0.9);
}

TEST(RunVerdict, TellsNoOverheadOfWorkersThatGrow) {
  const RunTracks run =
      SyntheticRun(3 * kHour, 10.0)
          .add(trainer(flat(6 * kGB)))
          .add(4, worker(Role::kDataloaderWorker, ramp(0.5 * kGB, 2 * kGB, 0, 3 * kHour)))
          .play();

  EXPECT_TRUE(judged(run).overheads.empty());
}

TEST(RunVerdict, SeesALeakThatWasSwappedOut) {
  Actor leaking = trainer(ramp(4 * kGB, 10 * kGB, 0, 2 * kHour));
  leaking.swap = ramp(0, 6 * kGB, 0, 2 * kHour);
  const RunTracks run = SyntheticRun(2 * kHour, 10.0).add(leaking).play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kLeak);
  EXPECT_EQ(where(run, verdict).kind, TrackKind::kProcess);
  EXPECT_EQ(verdict.held_as, HeldAs::kSwap);
  EXPECT_TRUE(advised(verdict).contains("swapped_out"));
}

TEST(RunVerdict, TakesAFillingPageCacheForStable) {
  Actor reading = trainer(flat(4 * kGB));
  reading.file = ramp(0.5 * kGB, 9 * kGB, 0, 2 * kHour);
  const RunTracks run = SyntheticRun(2 * kHour, 10.0).add(reading).play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kStable);
  EXPECT_EQ(verdict.held_as, HeldAs::kFileCache);
  EXPECT_EQ(advised(verdict), std::set<std::string>{"file_mapping"});
}

TEST(RunVerdict, SubtractsFilesFromRssWhereTheFootprintIsUnknown) {
  Actor reading = trainer(flat(4 * kGB));
  reading.file = ramp(0.5 * kGB, 9 * kGB, 0, 2 * kHour);
  RunTracks run = SyntheticRun(2 * kHour, 10.0).add(reading).play();
  Track process = run.tracks.back();
  process.of(Metric::kFootprint) = Series();
  run.tracks = {process};

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kStable);
  EXPECT_EQ(verdict.answer().metric, Metric::kFootprint);
  EXPECT_EQ(advised(verdict), std::set<std::string>{"file_mapping"});
}

TEST(RunVerdict, FindsSegmentsThatNobodyHolds) {
  const RunTracks run = SyntheticRun(2 * kHour, 10.0)
                            .add(trainer(flat(4 * kGB)))
                            .unheld_shm(ramp(0.1 * kGB, 3 * kGB, 0, 2 * kHour))
                            .play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kLeak);
  EXPECT_EQ(where(run, verdict).kind, TrackKind::kShm);
  EXPECT_EQ(verdict.held_as, HeldAs::kUnheldShm);
  EXPECT_EQ(advised(verdict), std::set<std::string>{"unheld_shm"});
}

TEST(RunVerdict, SeesASharedSegmentOnce) {
  SyntheticRun script(2 * kHour, 10.0);
  Actor main = trainer(ramp(2 * kGB, 4 * kGB, 0, 2 * kHour));
  main.shmem = ramp(0.0, 2 * kGB, 0, 2 * kHour);
  main.once = flat(2 * kGB);
  Actor loader =
      worker(Role::kDataloaderWorker, ramp(0.5 * kGB, 2.5 * kGB, 0, 2 * kHour), flat(0.5 * kGB));
  loader.shmem = ramp(0.0, 2 * kGB, 0, 2 * kHour);
  const RunTracks run = script.add(main).add(4, loader).play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kStable);
  EXPECT_EQ(verdict.held_as, HeldAs::kSharedSegment);
  EXPECT_TRUE(advised(verdict).contains("shared_segment"));
}

TEST(RunVerdict, IgnoresAHelperThatGrowsByItsOwnStandardsOnly) {
  const RunTracks run =
      SyntheticRun(4 * kHour, 10.0)
          .noise(0.02 * kMB)
          .add(trainer(flat(8 * kGB)))
          .add(worker(Role::kResourceTracker, ramp(10 * kMB, 14 * kMB, 0, 4 * kHour)))
          .add(2, worker(Role::kOther, ramp(10 * kMB, 14 * kMB, 0, 4 * kHour)))
          .play();

  EXPECT_EQ(judged(run).verdict, Verdict::kStable);
}

TEST(RunVerdict, MeasuresTheLeakOfAPartAgainstTheWhole) {
  // 30 MB an hour are 3 % of the role, and less than 0.5 % of the tree.
  const RunTracks run = SyntheticRun(8 * kHour, 30.0)
                            .add(trainer(flat(8 * kGB)))
                            .add(worker(Role::kRay, ramp(500 * kMB, 740 * kMB, 0, 8 * kHour)))
                            .add(worker(Role::kRay, flat(500 * kMB)))
                            .play();
  Options strict;
  strict.min_leak = Rate{10 * kMB, RateUnit::kSecond, 3600.0};

  EXPECT_LT(judged(run).verdict, Verdict::kGrowing);
  EXPECT_EQ(judged(run, strict).verdict, Verdict::kLeak);
}

TEST(RunVerdict, LetsALoneWorkerAnswerWhenItsLeakIsLargeForTheTree) {
  const RunTracks run =
      SyntheticRun(3 * kHour, 10.0)
          .add(trainer(ramp(9.5 * kGB, 8 * kGB, 0, 3 * kHour)))  // the tree falls
          .add(worker(Role::kDataloaderWorker, ramp(0.3 * kGB, 1.2 * kGB, 0, 3 * kHour)))
          .add(3, worker(Role::kDataloaderWorker, flat(0.3 * kGB)))
          .play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kLeak);
  EXPECT_EQ(where(run, verdict).role, Role::kDataloaderWorker);
}

TEST(RunVerdict, ForgetsTheGrowthOfATrainerThatEndedLongAgo) {
  Actor first = trainer(ramp(1 * kGB, 3 * kGB, 0, 200));
  first.exited_s = 200.0;
  Actor second = trainer(flat(3 * kGB));
  second.started_s = 210.0;
  const RunTracks run = SyntheticRun(2 * kHour, 5.0).add(first).add(second).play();

  EXPECT_LT(judged(run).verdict, Verdict::kGrowing);
}

TEST(RunVerdict, LeavesTheOthersTheirPartOfTheLimit) {
  RunTracks run = SyntheticRun(3 * kHour, 10.0)
                      .add(trainer(ramp(15 * kGB, 10 * kGB, 0, 3 * kHour)))  // the tree falls
                      .add(worker(Role::kRay, ramp(2 * kGB, 4 * kGB, 0, 3 * kHour)))
                      .add(worker(Role::kRay, flat(2 * kGB)))
                      .play();
  run.limit_bytes = 20 * kGB;

  const RunVerdict verdict = judged(run);

  // 16 of the 20 GB are taken at the end; the role grows by 2 GB in 3 hours.
  EXPECT_EQ(verdict.verdict, Verdict::kLeak);
  EXPECT_EQ(where(run, verdict).role, Role::kRay);
  const Forecast& forecast = verdict.answer().series.forecast;
  EXPECT_EQ(forecast.limit_bytes, 20 * kGB);
  ASSERT_TRUE(forecast.in_s_low && forecast.in_s_high);
  EXPECT_NEAR((*forecast.in_s_low + *forecast.in_s_high) / 2.0, 6 * kHour, kHour);
}

TEST(RunVerdict, CountsTheAllowanceOfTheTreeFromTheBirthOfItsTrainer) {
  Actor old = trainer(ramp(4 * kGB, 6 * kGB, 0, 1500));
  old.age_at_start_s = 5 * kHour;
  Actor young = old;
  young.age_at_start_s = 0.0;
  Actor wrapper = worker(Role::kWrapper, flat(20 * kMB));
  wrapper.age_at_start_s = 9 * kHour;

  EXPECT_EQ(judged(SyntheticRun(1500, 2.0).add(wrapper).add(old).play()).verdict, Verdict::kLeak);
  EXPECT_EQ(judged(SyntheticRun(1500, 2.0).add(wrapper).add(young).play()).verdict,
            Verdict::kGrowing);
}

TEST(RunVerdict, JudgesOnTheMetricThatWasAskedFor) {
  Actor reading = trainer(flat(4 * kGB));
  reading.file = ramp(0.5 * kGB, 9 * kGB, 0, 2 * kHour);
  const RunTracks run = SyntheticRun(2 * kHour, 10.0).add(reading).play();

  const std::optional<RunVerdict> verdict = judge_run(run, Options{}, Metric::kRss);

  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->verdict, Verdict::kLeak);
  EXPECT_EQ(verdict->answer().metric, Metric::kRss);
  EXPECT_FALSE(judge_run(run, Options{}, Metric::kGpu).has_value());
}

TEST(RunVerdict, UsesPssThenRssForATreeWithoutFootprint) {
  RunTracks run = SyntheticRun(kHour, 10.0)
                      .add(trainer(flat(4 * kGB)))
                      .add(worker(Role::kDataloaderWorker, flat(kGB)))
                      .play();
  for (Track& track : run.tracks) {
    track.of(Metric::kFootprint) = Series();
  }

  EXPECT_EQ(judged(run).answer().metric, Metric::kPss);
  RunTracks rarely_read = run;
  rarely_read.tracks.front().of(Metric::kPss) = Series();
  rarely_read.tracks.front().of(Metric::kPss).add(0.0, kUnknown, 5 * kGB);
  EXPECT_EQ(judged(rarely_read).answer().metric, Metric::kRss);
  run.tracks.front().of(Metric::kPss) = Series();
  EXPECT_EQ(judged(run).answer().metric, Metric::kRss);
}

}  // namespace
}  // namespace tidemark::tracker
