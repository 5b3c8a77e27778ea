// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/untraced_tracks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/site_run.h"
#include "tests/unit/tracker/traced_run.h"

namespace tidemark::tracker {
namespace {

using tests::constant;
using tests::kSiteMiB;
using tests::SiteRun;
using tests::trainer_record;
using tests::worker_record;

constexpr double kMiB = 1024.0 * 1024.0;

ProcessSample sample_of(const ProcessKey& key, std::uint64_t bytes) {
  ProcessSample sample;
  sample.key = key;
  sample.rss_bytes = bytes;
  sample.rss_anon_bytes = bytes;
  sample.rss_shmem_bytes = 0;
  sample.state = 'S';
  return sample;
}

// A traced process that holds what it has, and a worker beside it that is not traced.
std::vector<Tick> with_untraced(const SiteRun::Curve& worker, std::size_t seconds) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("model")}, constant(kSiteMiB));
  std::vector<Tick> ticks = run.ticks(seconds);
  ticks.front().new_processes.push_back(worker_record());
  for (Tick& tick : ticks) {
    tick.processes.push_back(sample_of(worker_record().key, worker(tick.t_s)));
  }
  return ticks;
}

TEST(UntracedGrowth, IsThatOfAProcessWithoutATrace) {
  std::vector<Tick> ticks = with_untraced(tests::rising(kSiteMiB, 10 * kSiteMiB), 61);
  ticks[2].allocations.untraced = {{worker_record().key, UntracedReason::kOtherUser}};

  const RunSites run = built(ticks);
  const auto all = untraced_growth(run.untraced, {});

  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].track->key, worker_record().key);
  EXPECT_EQ(all[0].track->label.role, Role::kRank);
  EXPECT_EQ(all[0].track->reason, UntracedReason::kOtherUser);
  EXPECT_NEAR(all[0].growth_bytes, 60.0 * kMiB, 3.0 * kMiB);
  EXPECT_TRUE(all[0].keeps_growing);
}

TEST(UntracedGrowth, IsKnownFromTwoSamplesToo) {
  const RunSites run = built(with_untraced(tests::rising(30 * kSiteMiB), 2));

  const auto all = untraced_growth(run.untraced, {});

  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].growth_bytes, 30.0 * kMiB);
  EXPECT_TRUE(all[0].keeps_growing);
}

TEST(UntracedGrowth, TellsWhatHasSettledAndWhatOnlyHolds) {
  const auto settles = [](double t_s) {
    return static_cast<std::uint64_t>(std::min(t_s, 20.0)) * 5 * kSiteMiB;
  };

  const RunSites settled = built(with_untraced(settles, 300));
  const RunSites held = built(with_untraced(constant(300 * kSiteMiB), 300));
  const RunSites little = built(with_untraced(constant(2 * kSiteMiB), 300));

  const auto first = untraced_growth(settled.untraced, {});
  ASSERT_EQ(first.size(), 1U);
  EXPECT_FALSE(first[0].keeps_growing);
  EXPECT_GT(first[0].growth_bytes, 50.0 * kMiB);
  const auto second = untraced_growth(held.untraced, {});
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].growth_bytes, 0.0);
  EXPECT_EQ(second[0].footprint_bytes, 300.0 * kMiB);
  EXPECT_TRUE(untraced_growth(little.untraced, {}).empty());
}

// The tracer's file is found some ticks after the process was first seen.
TEST(UntracedGrowth, IsNoneOfAProcessWhoseTraceComesLater) {
  std::vector<Tick> ticks = with_untraced(tests::rising(kSiteMiB), 60);
  for (std::size_t i = 3; i < ticks.size(); ++i) {
    ticks[i].allocations.traces.push_back(tests::trace_sample(worker_record().key, ticks[i].t_s));
  }

  EXPECT_TRUE(untraced_growth(built(ticks).untraced, {}).empty());
}

// A traced shell that becomes a program which is not traced.
TEST(UntracedGrowth, BeginsWithTheProgramThatIsNotTraced) {
  std::vector<Tick> ticks = with_untraced(tests::rising(kSiteMiB), 61);
  for (std::size_t i = 0; i <= 20; ++i) {
    TraceSample trace = tests::trace_sample(worker_record().key, ticks[i].t_s);
    trace.has_ended = i == 20;
    ticks[i].allocations.traces.push_back(trace);
  }
  ProcessRecord program = worker_record();
  program.comm = "program";
  ticks[21].new_processes.push_back(program);

  const RunSites run = built(ticks);
  const auto all = untraced_growth(run.untraced, {});

  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].track->label.comm, "program");
  EXPECT_EQ(all[0].from_s, 21.0);
  EXPECT_NEAR(all[0].growth_bytes, 39.0 * kMiB, 2.0 * kMiB);
}

TEST(UntracedGrowth, IsRememberedOfThoseThatGrewMost) {
  UntracedTracks tracks;
  for (int i = 1; i <= 1'000; ++i) {
    const ProcessKey key{i, 1};
    tracks.add(key, {}, 0.0, 0.0);
    tracks.add(key, {}, 1.0, i * kMiB);
    tracks.end(key);
  }

  EXPECT_EQ(tracks.all().size(), UntracedTracks::kMostEnded);
  EXPECT_EQ(untraced_growth(tracks, {}).at(0).track->key.pid, 1'000);
}

TEST(UntracedTracks, AskForAReasonOfWhatTheyHaveASampleOf) {
  const ProcessKey key{7, 1};
  UntracedTracks tracks;
  const bool before = tracks.lacks_reason(key);
  tracks.add(key, {}, 0.0, kMiB);
  const bool after = tracks.lacks_reason(key);
  tracks.set_reason({key, UntracedReason::kStatic});

  EXPECT_FALSE(before);
  EXPECT_TRUE(after);
  EXPECT_FALSE(tracks.lacks_reason(key));
}

// A job that starts a compiler after the other.
TEST(SiteTracks, ForgetProcessesThatHaveExitedAndHeldLittle) {
  constexpr std::uint64_t kProcesses = 3'000;
  SiteTrackBuilder builder;
  (void)builder.begin({});
  for (std::uint64_t i = 1; i <= kProcesses; ++i) {
    const ProcessKey key{static_cast<pid_t>(i), i};
    ProcessRecord process;
    process.key = key;
    Tick tick;
    tick.t_s = static_cast<double>(i);
    tick.new_processes = {process};
    const auto site = static_cast<std::uint32_t>(i);
    tick.allocations.sites = {{site, key, AllocationKind::kHeap, false, {}}};
    const std::uint64_t bytes = i == 5 ? 100 * kSiteMiB : i;
    tick.allocations.samples = {tests::site_sample(site, bytes)};
    TraceSample trace = tests::trace_sample(key, tick.t_s);
    trace.live_bytes = bytes;
    trace.freed_blocks = 2;
    trace.sites = 1;
    tick.allocations.traces = {trace};
    (void)builder.add(tick);
    tick.new_processes.clear();
    tick.allocations.sites.clear();
    tick.allocations.traces[0].has_ended = true;
    (void)builder.add(tick);
    (void)builder.process_ended(process);
  }

  const RunSites& run = builder.sites();
  EXPECT_LE(run.processes.size(), SiteTrackBuilder::kMostExited);
  EXPECT_EQ(run.sites.size(), run.processes.size());
  EXPECT_EQ(run.traced_processes(), kProcesses);
  EXPECT_EQ(run.forgotten.freed_blocks, 2 * (kProcesses - run.processes.size()));
  // The largest is still there, with its site.
  const auto largest = std::find_if(run.processes.begin(), run.processes.end(),
                                    [](const TracedProcess& each) { return each.key.pid == 5; });
  ASSERT_NE(largest, run.processes.end());
  ASSERT_EQ(largest->sites.size(), 1U);
  EXPECT_EQ(run.sites.at(largest->sites[0]).record.site, 5U);
  EXPECT_EQ(run.sites[largest->sites[0]].last.live_bytes, 100 * kSiteMiB);
}

TEST(SiteTracks, CutOffNamesThatNobodyCouldRead) {
  SiteTrackBuilder builder;
  Tick tick;
  tick.allocations.modules = {{1, std::string(8U << 20U, 'm'), ""}};
  FrameRecord frame;
  frame.frame = 1;
  frame.function = std::string(8U << 20U, 'f');
  tick.allocations.frames = {frame};

  (void)builder.add(tick);

  EXPECT_EQ(builder.sites().frames.at(1).function.size(), kMostNameBytes);
  EXPECT_EQ(builder.sites().modules.at(1).path.size(), kMostNameBytes);
}

}  // namespace
}  // namespace tidemark::tracker
