// SPDX-License-Identifier: Apache-2.0
// Verdicts on workers that share a heap with their parent until they write to it.
#include <gtest/gtest.h>

#include <set>
#include <string>

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
using tests::worker;

TEST(RunVerdict, BoundsCopyOnWriteGrowthByWhatTheWorkersSee) {
  const RunTracks run =
      SyntheticRun(2 * kHour, 10.0)
          .add(trainer(flat(3 * kGB)))
          .add(4, worker(Role::kDataloaderWorker, flat(3 * kGB), ramp(0.1 * kGB, 2 * kGB, 0, 9000)))
          .play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kGrowing);
  EXPECT_TRUE(verdict.answer().series.undetermined);
  ASSERT_TRUE(verdict.answer().series.forecast.asymptote_bytes.has_value());
  EXPECT_LE(*verdict.answer().series.forecast.asymptote_bytes, 15.1 * kGB);
  EXPECT_GT(*verdict.answer().series.forecast.asymptote_bytes, 9 * kGB);
  EXPECT_EQ(verdict.answer().series.find(PatternKind::kLeak), nullptr);
  EXPECT_EQ(verdict.held_as, HeldAs::kCopyOnWrite);
  EXPECT_EQ(carrier(run, verdict)->role, Role::kDataloaderWorker);
  EXPECT_TRUE(advised(verdict).contains("dataloader_copy_on_write"));
}

// Workers that share what they see, copy it at a constant rate from their birth on, and are gone
// with the last step.
RunTracks copying_workers(double started_s, double last_born_s, double end_step) {
  Actor actor = worker(Role::kDataloaderWorker, flat(3 * kGB), ramp(0, 2 * kGB, started_s, 12'000));
  actor.started_s = started_s;
  SyntheticRun play(2 * kHour, 10.0);
  play.steps_per_s(1.0).add(trainer(flat(3 * kGB))).add(3, actor);
  actor.started_s = last_born_s;
  RunTracks run = play.add(actor).play();
  for (Track& track : run.tracks) {
    const double left = track.kind == TrackKind::kTree ? 3 * kGB : 0.0;
    if (track.kind == TrackKind::kTree || track.role == Role::kDataloaderWorker) {
      for (const Metric metric : {Metric::kFootprint, Metric::kRss}) {
        track.of(metric).add(2 * kHour + 10.0, end_step, left);
        track.of(metric).add(2 * kHour + 20.0, kUnknown, left);
      }
    }
  }
  return run;
}

TEST(RunVerdict, BoundsCopyOnWriteGrowthOfWorkersThatCameAndWentInTheRun) {
  Options options;
  options.warmup.steps = 3300;

  for (const RunTracks& run :
       {copying_workers(0, 300, 7210), copying_workers(3000, 3020, kUnknown)}) {
    const RunVerdict verdict = judged(run, options);

    EXPECT_EQ(verdict.verdict, Verdict::kGrowing);
    EXPECT_EQ(verdict.answer().series.find(PatternKind::kLeak), nullptr);
    EXPECT_EQ(verdict.held_as, HeldAs::kCopyOnWrite);
  }
  const RunVerdict verdict = judged(copying_workers(0, 300, 7210), options);
  EXPECT_TRUE(advised(verdict).contains("dataloader_copy_on_write"));
}

TEST(RunVerdict, CallsCopyOnWriteGrowthThatEndedAWarmup) {
  const RunTracks run =
      SyntheticRun(2 * kHour, 10.0)
          .add(trainer(flat(3 * kGB)))
          .add(4, worker(Role::kDataloaderWorker, flat(3 * kGB), ramp(0.1 * kGB, 2 * kGB, 0, 2000)))
          .play();

  EXPECT_EQ(judged(run).verdict, Verdict::kWarmup);
}

TEST(RunVerdict, CallsWorkersThatGrowBeyondTheirParentALeak) {
  const RunTracks run =
      SyntheticRun(3 * kHour, 10.0)
          .add(trainer(flat(3 * kGB)))
          .add(4, worker(Role::kDataloaderWorker, ramp(3 * kGB, 6 * kGB, 0, 20000),
                         ramp(2 * kGB, 5 * kGB, 0, 20000)))
          .play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kLeak);
  EXPECT_EQ(carrier(run, verdict)->role, Role::kDataloaderWorker);
  EXPECT_EQ(carrier(run, verdict)->kind, TrackKind::kRole);
}

TEST(RunVerdict, BoundsCopyOnWriteGrowthOfATreeWhoseProcessesAreUnknown) {
  RunTracks run;
  Track tree;
  for (double t_s = 0.0; t_s < 2 * kHour; t_s += 10.0) {
    tree.of(Metric::kRss).add(t_s, kUnknown, 13.4 * kGB);
    tree.of(Metric::kPss).add(t_s, kUnknown, 2.8 * kGB + 1 * kMB * t_s);
  }
  run.tracks.push_back(tree);

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kGrowing);
  EXPECT_EQ(verdict.answer().metric, Metric::kPss);
  EXPECT_EQ(verdict.answer().series.forecast.asymptote_bytes, 13.4 * kGB);
}

TEST(RunVerdict, DoesNotTakeALeakForCopyOnWriteWhenFilesMakeRoomForIt) {
  Actor leaking = trainer(ramp(4 * kGB, 10 * kGB, 0, 3 * kHour));
  leaking.file = ramp(6 * kGB, 0, 0, 3 * kHour);
  const RunTracks run = SyntheticRun(3 * kHour, 10.0)
                            .add(leaking)
                            .add(4, worker(Role::kDataloaderWorker, flat(3 * kGB), flat(100 * kMB)))
                            .play();

  const RunVerdict verdict = judged(run);

  EXPECT_EQ(verdict.verdict, Verdict::kLeak);
  EXPECT_EQ(verdict.held_as, HeldAs::kPrivate);
  EXPECT_FALSE(reading_of(run, verdict, TrackKind::kTree, Role::kOther)->copy_on_write);
}

}  // namespace
}  // namespace tidemark::tracker
