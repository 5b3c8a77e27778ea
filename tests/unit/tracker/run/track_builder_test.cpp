// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/track_builder.h"
#include "common/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tidemark::tracker {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsNan;
using testing::Pair;
using testing::SizeIs;

constexpr ProcessKey kTrainer{100, 1};
constexpr ProcessKey kWorker{101, 2};

ProcessRecord record_of(const ProcessKey& key, Role role, std::optional<int> rank = {}) {
  ProcessRecord record;
  record.key = key;
  record.role = role;
  record.rank = rank;
  record.comm = "python3";
  return record;
}

ProcessSample sample_of(const ProcessKey& key, std::uint64_t anon_mib) {
  ProcessSample sample;
  sample.key = key;
  sample.rss_bytes = (anon_mib + 10) * kMiB;
  sample.rss_anon_bytes = anon_mib * kMiB;
  sample.rss_file_bytes = 10 * kMiB;
  sample.rss_shmem_bytes = 0;
  sample.state = 'R';
  return sample;
}

// One trainer.
Tick tick_at(double t_s, std::uint64_t mib = 100) {
  Tick tick;
  tick.t_s = t_s;
  tick.processes = {sample_of(kTrainer, mib)};
  tick.tree = {1, (mib + 10) * kMiB, 0, mib * kMiB, false, {}, 0};
  tick.roles = {{Role::kTrainer, tick.tree}};
  if (t_s == 0.0) {
    tick.new_processes = {record_of(kTrainer, Role::kTrainer)};
  }
  return tick;
}

MarkerRecord step_at(double t_s, std::int64_t step, const ProcessKey& key = kTrainer) {
  return {t_s, key, MarkerKind::kStep, step, {}};
}

RunTracks built(const std::vector<Tick>& ticks, const RunInfo& info = {}) {
  TrackBuilder builder;
  EXPECT_TRUE(builder.begin(info));
  for (const Tick& tick : ticks) {
    EXPECT_TRUE(builder.add(tick));
  }
  EXPECT_TRUE(builder.end(ticks.back().t_s));
  return builder.take();
}

const Track* find(const RunTracks& run, TrackKind kind, Role role = Role::kTrainer) {
  for (const Track& track : run.tracks) {
    if (track.kind == kind && (kind == TrackKind::kTree || track.role == role)) {
      return &track;
    }
  }
  return nullptr;
}

std::vector<double> steps_of(const Series& series) {
  std::vector<double> steps;
  for (const Cell& cell : series.cells()) {
    steps.push_back(cell.step);
  }
  return steps;
}

TEST(TrackBuilder, PutsTheTreeFirstThenRolesThenProcessesThenShm) {
  Tick tick = tick_at(0);
  tick.system.emplace();
  tick.system->dev_shm_unheld_bytes = 5 * kMiB;

  const RunTracks run = built({tick, tick_at(1)});

  ASSERT_THAT(run.tracks, SizeIs(4));
  EXPECT_EQ(run.tracks[0].kind, TrackKind::kTree);
  EXPECT_EQ(run.tracks[1].kind, TrackKind::kRole);
  EXPECT_EQ(run.tracks[2].kind, TrackKind::kProcess);
  EXPECT_EQ(run.tracks[2].key, kTrainer);
  EXPECT_EQ(run.tracks[2].comm, "python3");
  EXPECT_EQ(run.tracks[3].kind, TrackKind::kShm);
  EXPECT_EQ(run.tracks[3].of(Metric::kFootprint).samples(), 1U);
}

TEST(TrackBuilder, KeepsEachMetricThatIsKnownAndNoOther) {
  Tick tick = tick_at(0);
  tick.processes[0].swap_bytes = 3 * kMiB;

  const RunTracks run = built({tick});

  const Track& process = *find(run, TrackKind::kProcess);
  EXPECT_EQ(process.of(Metric::kFootprint).cells()[0].min_bytes, 103.0 * kMiB);
  EXPECT_EQ(process.of(Metric::kRss).cells()[0].min_bytes, 110.0 * kMiB);
  EXPECT_EQ(process.of(Metric::kRssFile).cells()[0].min_bytes, 10.0 * kMiB);
  EXPECT_EQ(process.of(Metric::kSwap).cells()[0].min_bytes, 3.0 * kMiB);
  EXPECT_TRUE(process.of(Metric::kPss).empty());
  EXPECT_TRUE(process.of(Metric::kGpu).empty());
}

TEST(TrackBuilder, KnowsWhatTheAllocatorKeptAtFirstAndAtLast) {
  TrackBuilder builder;
  for (int second = 0; second < 4; ++second) {
    Tick tick = tick_at(second);
    if (second > 0) {
      MemoryAccount account;
      account.key = kTrainer;
      account.slack_bytes = static_cast<std::uint64_t>(second) * kMiB;
      tick.allocations.accounts = {account};
    }
    ASSERT_TRUE(builder.add(tick));
  }

  const RunTracks run = builder.tracks();
  const Track& trainer = run.tracks.back();
  ASSERT_EQ(trainer.key, kTrainer);
  EXPECT_EQ(trainer.first_slack_bytes, 1.0 * kMiB);
  EXPECT_EQ(trainer.last_slack_bytes, 3.0 * kMiB);
}

TEST(TrackBuilder, TakesASharedSizeOnlyWhenItWasReadAnew) {
  std::vector<Tick> ticks;
  for (const double age : {0.0, 1.0, 2.0, 0.5}) {
    ticks.push_back(tick_at(static_cast<double>(ticks.size())));
    ticks.back().processes[0].pss_bytes = 50 * kMiB;
    ticks.back().processes[0].uss_bytes = 40 * kMiB;
    ticks.back().processes[0].pss_age_s = age;
  }

  const RunTracks run = built(ticks);

  EXPECT_EQ(find(run, TrackKind::kProcess)->of(Metric::kPss).samples(), 2U);
  EXPECT_EQ(find(run, TrackKind::kProcess)->of(Metric::kUss).samples(), 2U);
}

TEST(TrackBuilder, PlacesSamplesBetweenStepMarkers) {
  std::vector<Tick> ticks;
  for (int t = 0; t <= 6; ++t) {
    ticks.push_back(tick_at(t));
  }
  ticks[1].markers = {step_at(1.0, 10)};
  ticks[3].markers = {step_at(3.0, 11)};
  ticks[5].markers = {step_at(5.0, 12)};

  const RunTracks run = built(ticks);

  EXPECT_THAT(steps_of(find(run, TrackKind::kProcess)->of(Metric::kFootprint)),
              ElementsAre(IsNan(), DoubleEq(10), DoubleEq(10.5), DoubleEq(11), DoubleEq(11.5),
                          DoubleEq(12), DoubleEq(12)));
}

TEST(TrackBuilder, PlacesSamplesBeforeTheMarkersThatCameWhileTheyWereTaken) {
  std::vector<Tick> ticks;
  for (int t = 0; t <= 4; ++t) {
    ticks.push_back(tick_at(t));
    ticks.back().step = 2 * t + 2;
  }
  ticks[0].markers = {step_at(0.25, 1), step_at(0.5, 2)};
  for (int t = 1; t <= 4; ++t) {
    const auto tick = static_cast<std::size_t>(t);
    ticks[tick].markers = {step_at(t - 0.5, 2 * t + 1), step_at(t + 0.5, 2 * t + 2)};
  }

  const RunTracks run = built(ticks);

  EXPECT_THAT(steps_of(find(run, TrackKind::kTree)->of(Metric::kFootprint)),
              ElementsAre(IsNan(), DoubleEq(3.5), DoubleEq(5.5), DoubleEq(7.5), DoubleEq(9.5)));
}

TEST(TrackBuilder, LeavesSamplesAfterTheLastStepWithoutOne) {
  std::vector<Tick> ticks;
  for (int t = 0; t <= 5; ++t) {
    ticks.push_back(tick_at(t));
    if (t <= 2) {
      ticks.back().markers = {step_at(t, t + 1)};
    }
  }

  const RunTracks run = built(ticks);

  const Series& series = find(run, TrackKind::kTree)->of(Metric::kFootprint);
  EXPECT_THAT(steps_of(series), ElementsAre(1, 2, 3, 3, IsNan(), IsNan()));
  EXPECT_EQ(series.cells().back().t_s, 5.0);
}

TEST(TrackBuilder, ShowsALiveRunAsIfItEndedNow) {
  TrackBuilder builder;
  ASSERT_TRUE(builder.begin({}));
  for (int t = 0; t < 4; ++t) {
    Tick tick = tick_at(t);
    tick.markers = {step_at(t, t)};
    ASSERT_TRUE(builder.add(tick));
  }

  const RunTracks now = builder.tracks();
  ASSERT_TRUE(builder.add(tick_at(4)));

  EXPECT_EQ(find(now, TrackKind::kProcess)->of(Metric::kFootprint).samples(), 4U);
  EXPECT_EQ(find(builder.tracks(), TrackKind::kProcess)->of(Metric::kFootprint).samples(), 5U);
}

TEST(TrackBuilder, FollowsTheStepsOfTheLowestRankOnly) {
  const ProcessKey rank0{200, 1};
  const ProcessKey rank1{201, 1};
  std::vector<Tick> ticks{tick_at(0), tick_at(1), tick_at(2)};
  ticks[0].new_processes = {record_of(rank1, Role::kRank, 1), record_of(rank0, Role::kRank, 0)};
  ticks[0].markers = {step_at(0.0, 1000, rank1), step_at(0.0, 1, rank0)};
  ticks[1].markers = {step_at(1.0, 1001, rank1), step_at(1.0, 2, rank0)};
  ticks[2].markers = {step_at(2.0, 1002, rank1), step_at(2.0, 3, rank0)};

  const RunTracks run = built(ticks);

  // The first marker was of rank 1; from then on rank 0 counts, a step a second.
  const auto steps = steps_of(find(run, TrackKind::kTree)->of(Metric::kFootprint));
  EXPECT_DOUBLE_EQ(steps[1] - steps[0], 1.0);
  EXPECT_DOUBLE_EQ(steps[2] - steps[1], 1.0);
}

TEST(TrackBuilder, TakesTheStepOfTheSampleWhereThereAreNoMarkers) {
  std::vector<Tick> ticks{tick_at(0), tick_at(1), tick_at(2)};
  ticks[1].step = 5;
  ticks[2].step = 6;

  const RunTracks run = built(ticks);

  EXPECT_THAT(steps_of(find(run, TrackKind::kTree)->of(Metric::kRss)), ElementsAre(IsNan(), 5, 6));
}

TEST(TrackBuilder, KnowsNoTimeWhereTheRecordingCountsSteps) {
  RunInfo info;
  info.time_is_steps = true;
  std::vector<Tick> ticks{tick_at(0), tick_at(10), tick_at(20), tick_at(30)};
  ticks[0].markers = {{0.0, {}, MarkerKind::kEpoch, 0, {}}};
  ticks[2].markers = {{20.0, {}, MarkerKind::kEpoch, 1, {}}};

  const RunTracks run = built(ticks, info);

  const Series& series = find(run, TrackKind::kTree)->of(Metric::kFootprint);
  EXPECT_THAT(steps_of(series), ElementsAre(0, 10, 20, 30));
  EXPECT_TRUE(std::isnan(series.cells()[1].t_s));
  EXPECT_EQ(run.epoch_steps, 20.0);
  EXPECT_FALSE(run.epoch_seconds);
}

TEST(TrackBuilder, DoesNotTakeTheFirstSampleForTheBeginningOfAnEpoch) {
  RunInfo info;
  info.time_is_steps = true;
  std::vector<Tick> ticks;
  for (int t = 30; t <= 120; t += 10) {
    ticks.push_back(tick_at(t));
    if (t == 30 || t % 40 == 0) {
      ticks.back().markers = {{t * 1.0, {}, MarkerKind::kEpoch, t / 40, {}}};
    }
  }

  EXPECT_EQ(built(ticks, info).epoch_steps, 40.0);  // and not 10
}

TEST(TrackBuilder, LeavesOutSharedMemoryThatWasNeverThere) {
  Tick tick = tick_at(0);
  tick.system.emplace();
  tick.system->dev_shm_unheld_bytes = 0;

  EXPECT_EQ(find(built({tick}), TrackKind::kShm, Role::kOther), nullptr);
}

// What was found is repeated in every tick until the next look, here at every fifth.
TEST(TrackBuilder, TakesARepeatedFigureOfSharedMemoryForNoSampleWhileSomethingChanges) {
  std::vector<Tick> ticks;
  for (int t = 0; t <= 60; ++t) {
    // Something else comes at the second tick, and stays.
    const std::uint64_t other = t < 1 ? 0 : kMiB;
    const std::uint64_t leaked = other + (t < 20 ? 0 : static_cast<std::uint64_t>(t - 20) * kMiB);
    const std::uint64_t found = t < 20 ? 0 : static_cast<std::uint64_t>((t - 20) / 5 * 5) * kMiB;
    ticks.push_back(tick_at(0.2 * t));
    ticks.back().system.emplace();
    ticks.back().system->dev_shm_bytes = leaked;
    ticks.back().system->dev_shm_unheld_bytes = found;
  }

  const RunTracks run = built(ticks);
  const Track* const shm = find(run, TrackKind::kShm, Role::kOther);

  ASSERT_NE(shm, nullptr);
  // 20 while nothing changes, then one for each look.
  const std::vector<Cell>& cells = shm->of(Metric::kFootprint).cells();
  ASSERT_THAT(cells, SizeIs(20 + 8));
  for (std::size_t i = 20; i < cells.size(); ++i) {
    EXPECT_DOUBLE_EQ(cells[i].min_bytes - cells[i - 1].min_bytes, 5.0 * kMiB);
  }
}

TEST(TrackBuilder, BelievesAFigureOfSharedMemoryThatHasNotChangedForLong) {
  std::vector<Tick> ticks;
  for (int t = 0; t <= 60; ++t) {  // segments that are held come and go
    ticks.push_back(tick_at(t));
    ticks.back().system.emplace();
    ticks.back().system->dev_shm_bytes = static_cast<std::uint64_t>(t) * kMiB;
    ticks.back().system->dev_shm_unheld_bytes = 5 * kMiB;
  }

  const RunTracks run = built(ticks);
  const Track* const shm = find(run, TrackKind::kShm, Role::kOther);

  ASSERT_NE(shm, nullptr);
  EXPECT_THAT(shm->of(Metric::kFootprint).cells(), SizeIs(7));
}

TEST(TrackBuilder, MeasuresTheEpochInStepsAndSeconds) {
  std::vector<Tick> ticks;
  for (int t = 0; t <= 30; ++t) {
    ticks.push_back(tick_at(t));
    if (t % 10 == 0) {
      // Two processes mark the same epoch.
      ticks.back().markers = {{t * 1.0, kTrainer, MarkerKind::kEpoch, t / 10, {}},
                              {t * 1.0, kWorker, MarkerKind::kEpoch, t / 10, {}}};
    }
    ticks.back().markers.push_back(step_at(t, 2 * t));
  }

  const RunTracks run = built(ticks);

  EXPECT_EQ(run.epoch_seconds, 10.0);
  EXPECT_EQ(run.epoch_steps, 20.0);
}

TEST(TrackBuilder, SkipsZombiesAndEmptyTrees) {
  std::vector<Tick> ticks{tick_at(0), tick_at(1), tick_at(2)};
  ticks[1].processes[0].state = 'Z';
  ticks[1].processes[0].rss_bytes = 0;
  ticks[1].tree = {1, 0, 0, 0, false, {}, 0};
  ticks[1].roles = {{Role::kTrainer, ticks[1].tree}};
  ticks[2].processes.clear();
  ticks[2].roles.clear();
  ticks[2].tree = {};

  const RunTracks run = built(ticks);

  for (const Track& track : run.tracks) {
    EXPECT_EQ(track.of(Metric::kRss).samples(), 1U);
  }
}

TEST(TrackBuilder, KnowsHowOldProcessesAreAndWhatStepTheJobIsAt) {
  std::vector<Tick> ticks{tick_at(0), tick_at(1), tick_at(2)};
  ticks[0].new_processes[0].age_s = 3600.0;
  ticks[1].markers = {step_at(0.5, 12'000)};
  ticks[2].markers = {step_at(1.5, 12'001)};

  const RunTracks run = built(ticks);

  EXPECT_EQ(find(run, TrackKind::kProcess)->age_at_start_s, 3600.0);
  EXPECT_EQ(run.steps_at_start, 12'000.0);
}

TEST(TrackBuilder, DoesNotKnowTheAgeInARecordingWithoutIt) {
  const RunTracks run = built({tick_at(0), tick_at(1)});

  EXPECT_EQ(find(run, TrackKind::kProcess)->age_at_start_s, std::nullopt);
  EXPECT_EQ(run.steps_at_start, std::nullopt);
}

TEST(TrackBuilder, BeginsAnewWhenAProcessRunsAnotherProgram) {
  std::vector<Tick> ticks{tick_at(0, 1), tick_at(1, 500)};
  ticks[0].new_processes = {record_of(kTrainer, Role::kOther)};
  ticks[0].new_processes[0].age_s = 3600.0;
  ticks[1].new_processes = {record_of(kTrainer, Role::kTrainer)};
  ticks[1].events = {{1.0, EventKind::kExec, kTrainer, "python3 train.py"}};

  const RunTracks run = built(ticks);

  const Track& process = *find(run, TrackKind::kProcess);
  EXPECT_EQ(process.of(Metric::kFootprint).samples(), 1U);
  EXPECT_EQ(process.started_s, 1.0);
  EXPECT_EQ(process.age_at_start_s, 0.0);
  EXPECT_THAT(run.events, SizeIs(1));
}

TEST(TrackBuilder, CountsProcessesBeyondItsRoomAndAlwaysHasRoomForTheTrainer) {
  Tick crowd = tick_at(1);
  for (std::size_t i = 0; i < TrackBuilder::kMostProcesses + 9; ++i) {
    const ProcessKey key{static_cast<pid_t>(1000 + i), i};
    crowd.new_processes.push_back(record_of(key, Role::kOther));
    crowd.processes.push_back(sample_of(key, 1));
  }
  Tick late = tick_at(2);
  late.new_processes = {record_of(kTrainer, Role::kTrainer)};

  const RunTracks run = built({crowd, late});

  EXPECT_NE(find(run, TrackKind::kProcess, Role::kTrainer), nullptr);
  EXPECT_THAT(run.losses, testing::Contains(Pair("processes_untracked", testing::Ge(9U))));
}

TEST(TrackBuilder, GivesTheRoomOfShortLivedHelpersToOthers) {
  TrackBuilder builder;
  ASSERT_TRUE(builder.begin({}));
  for (std::size_t i = 0; i < 2 * TrackBuilder::kMostProcesses; ++i) {
    const ProcessKey key{static_cast<pid_t>(1000 + i), i};
    Tick tick = tick_at(static_cast<double>(i + 1));
    tick.new_processes = {record_of(key, Role::kOther)};
    tick.processes = {sample_of(key, 1)};
    ASSERT_TRUE(builder.add(tick));
    ProcessRecord ended = record_of(key, Role::kOther);
    ended.exited_s = tick.t_s;
    ASSERT_TRUE(builder.process_ended(ended));
  }

  const RunTracks run = builder.take();

  EXPECT_EQ(run.tracks.back().kind, TrackKind::kProcess);
  EXPECT_THAT(run.tracks, SizeIs(2 + TrackBuilder::kMostProcesses));  // tree, role
  bool has_last = false;
  for (const Track& track : run.tracks) {
    has_last |= track.key.start_ticks == 2 * TrackBuilder::kMostProcesses - 1;
  }
  EXPECT_TRUE(has_last);
}

TEST(TrackBuilder, AddsTheGpusOfAProcess) {
  Tick tick = tick_at(0);
  tick.gpus.resize(2);
  tick.gpus[0].processes = {{kTrainer.pid, 3 * kMiB}};
  tick.gpus[1].processes = {{kTrainer.pid, kMiB}};

  const RunTracks run = built({tick});

  for (const Track& track : run.tracks) {
    EXPECT_EQ(track.of(Metric::kGpu).cells()[0].min_bytes, 4.0 * kMiB);
  }
}

TEST(TrackBuilder, KeepsPhasesEventsLossesAndTheLimit) {
  RunInfo info;
  info.limit_bytes = 7 * kMiB;
  info.limit_source = "cgroup";
  std::vector<Tick> ticks{tick_at(0), tick_at(1)};
  ticks[0].markers = {{0.5, kTrainer, MarkerKind::kPhaseBegin, 0, "eval"}};
  ticks[1].events = {{1.0, EventKind::kExit, kTrainer, ""}, {1.0, EventKind::kGap, {}, ""}};
  ticks[0].losses = {{0.0, LossKind::kPssDenied, 2}};
  ticks[1].losses = {{1.0, LossKind::kPssDenied, 3}};

  const RunTracks run = built(ticks, info);

  ASSERT_THAT(run.events, SizeIs(2));
  EXPECT_EQ(run.events[0].name, "eval");
  EXPECT_EQ(run.events[0].role, Role::kTrainer);
  EXPECT_EQ(run.events[1].kind, RunEvent::Kind::kExit);
  EXPECT_THAT(run.losses, ElementsAre(Pair("pss_denied", 5U)));
  EXPECT_EQ(run.limit_bytes, 7.0 * kMiB);
  EXPECT_EQ(run.limit_source, "cgroup");
}

TEST(TrackBuilder, HasNothingToShowForARunWithoutSamples) {
  EXPECT_THAT(built({Tick{}}).tracks, IsEmpty());
}

// A spike that came and went between two samples is in the kernel's high-water mark.
TEST(TrackBuilder, KnowsPeaksBetweenSamplesFromTheHighWaterMark) {
  TrackBuilder builder;
  ASSERT_TRUE(builder.begin({}));
  constexpr std::uint64_t kSpikeMib = 600;
  for (int i = 0; i < 40; ++i) {
    Tick tick = tick_at(i, 100);
    const bool spiked = i >= 17;
    tick.processes[0].hwm_bytes = (110 + (spiked ? kSpikeMib : 0)) * kMiB;
    ASSERT_TRUE(builder.add(tick));
  }
  const RunTracks run = builder.take();

  for (const Track& track : run.tracks) {
    const std::vector<Cell>& cells = track.of(Metric::kFootprint).cells();
    ASSERT_EQ(cells.size(), 40U);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      EXPECT_DOUBLE_EQ(cells[i].min_bytes, 100.0 * kMiB);
      EXPECT_DOUBLE_EQ(cells[i].max_bytes, (i == 17 ? 700.0 : 100.0) * kMiB) << i;
    }
  }
}

TEST(TrackBuilder, TakesNoPeakFromBeforeTheFirstSample) {
  TrackBuilder builder;
  ASSERT_TRUE(builder.begin({}));
  for (int i = 0; i < 10; ++i) {
    Tick tick = tick_at(i, 100);
    tick.processes[0].hwm_bytes = 900 * kMiB;
    ASSERT_TRUE(builder.add(tick));
  }
  for (const Track& track : builder.take().tracks) {
    EXPECT_DOUBLE_EQ(track.of(Metric::kFootprint).cells().front().max_bytes, 100.0 * kMiB);
  }
}

}  // namespace
}  // namespace tidemark::tracker
