// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/site_ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/site_run.h"
#include "tests/unit/tracker/traced_run.h"

namespace tidemark::tracker {
namespace {

using testing::ElementsAre;
using tests::constant;
using tests::kSiteMiB;
using tests::rising;
using tests::SiteRun;
using tests::trainer_record;
using tests::worker_record;

TEST(SiteRanking, PutsWhatGrowsBeforeWhatIsLarge) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("import_torch")}, constant(900 * kSiteMiB));
  run.add_site(trainer_record().key, {run.add_frame("collate")}, rising(kSiteMiB));

  const SiteRanking ranking = rank_sites(built(run, 300), short_warmup());

  ASSERT_EQ(ranking.sites.size(), 2U);
  EXPECT_EQ(ranking.sites[0].verdict, Verdict::kLeak);
  EXPECT_NEAR(ranking.sites[0].growth_bytes_per_s, kSiteMiB, 0.02 * kSiteMiB);
  EXPECT_EQ(ranking.sites[1].verdict, Verdict::kStable);
  EXPECT_EQ(ranking.sites[1].growth_bytes_per_s, 0.0);
}

// Blocks that nobody looked up are taken for resident, and were never touched.
TEST(SiteRanking, DoesNotExplainMoreThanThereIs) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("reserve")}, constant(74 * kSiteMiB));
  SiteTrackBuilder builder;
  for (Tick& tick : run.ticks(100)) {
    tick.processes.at(0).rss_anon_bytes = 10 * kSiteMiB;
    tick.processes.at(0).rss_shmem_bytes = kSiteMiB;
    (void)builder.add(tick);
  }

  const SiteRanking ranking = rank_sites(builder.sites(), short_warmup());

  const ProcessGrowth& process = ranking.processes.at(0);
  ASSERT_TRUE(process.now.footprint && process.now.shared && process.now.sites);
  EXPECT_EQ(*process.now.sites, *process.now.footprint - *process.now.shared);
  EXPECT_EQ(process.explained_share, std::nullopt);
}

TEST(SiteRanking, PutsTheFasterBeforeTheSlower) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("slow")}, rising(kSiteMiB / 8, 500 * kSiteMiB));
  run.add_site(trainer_record().key, {run.add_frame("fast")}, rising(kSiteMiB));

  const RunSites sites = built(run, 300);
  const SiteRanking ranking = rank_sites(sites, short_warmup());

  EXPECT_EQ(sites.frames.at(ranking.sites.at(0).frames.at(0)).function, "fast");
}

// A job that puts its results together before it ends, say: far more than the leak, all at once.
TEST(SiteRanking, PutsWhatCameOnlyAtTheEndBehindWhatGrewBefore) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("leak")}, rising(kSiteMiB));
  run.add_site(trainer_record().key, {run.add_frame("results")},
               [](double t_s) { return t_s < 38.0 ? 0 : 300 * kSiteMiB; });
  run.add_site(trainer_record().key, {run.add_frame("step")},
               [](double t_s) { return t_s < 38.0 ? 20 * kSiteMiB : 200 * kSiteMiB; });

  const RunSites sites = built(run, 40);
  const SiteRanking ranking = rank_sites(sites, {});

  const auto name = [&](std::size_t i) {
    return sites.frames.at(ranking.sites.at(i).frames.at(0)).function;
  };
  EXPECT_THAT((std::vector{name(0), name(1), name(2)}), ElementsAre("leak", "results", "step"));
  EXPECT_FALSE(ranking.sites[0].came_at_once);
  EXPECT_TRUE(ranking.sites[1].came_at_once);
  EXPECT_EQ(ranking.lines.at(0).sites, std::vector<std::size_t>{0});
  EXPECT_EQ(ranking.processes.at(0).from_s, *ranking.sites[0].since.t_s);
}

TEST(SiteRanking, PutsASingleAllocationBehindWhatGoesOn) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("leak")}, rising(kSiteMiB));
  const auto block = run.add_site(trainer_record().key, {run.add_frame("block")},
                                  [](double t_s) { return t_s < 6.0 ? 0 : 300 * kSiteMiB; });
  std::vector<Tick> ticks = run.ticks(9);
  for (Tick& tick : ticks) {
    for (SiteSample& sample : tick.allocations.samples) {
      sample.alloc_blocks = sample.site == block ? 1 : 9;
    }
  }

  const RunSites sites = built(ticks);
  const SiteRanking ranking = rank_sites(sites, {});

  EXPECT_EQ(sites.frames.at(ranking.sites.at(0).frames.at(0)).function, "leak");
  EXPECT_TRUE(ranking.sites.at(1).grows());
  EXPECT_TRUE(ranking.sites.at(1).came_at_once);
}

TEST(SiteRanking, SaysWhichShareOfTheGrowthASiteExplains) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("most")}, rising(3 * kSiteMiB));
  run.add_site(trainer_record().key, {run.add_frame("some")}, rising(kSiteMiB));

  const SiteRanking ranking = rank_sites(built(run, 300), short_warmup());

  ASSERT_TRUE(ranking.sites[0].share_of_growth && ranking.sites[1].share_of_growth);
  EXPECT_NEAR(*ranking.sites[0].share_of_growth, 0.75, 0.02);
  EXPECT_NEAR(*ranking.sites[1].share_of_growth, 0.25, 0.02);
  EXPECT_NEAR(*ranking.processes.at(0).growth.footprint, *ranking.processes[0].growth.sites,
              2 * kSiteMiB);
}

// The threads of a process may have a site each for the same stack.
TEST(SiteRanking, CountsAProcessOnceThatHasSeveralSitesOfOneStack) {
  SiteRun run = one_process();
  const auto frame = run.add_frame("collate");
  const auto first = run.add_site(trainer_record().key, {frame}, rising(3 * kSiteMiB));
  const auto second = run.add_site(trainer_record().key, {frame}, rising(kSiteMiB));
  std::vector<Tick> ticks = run.ticks(300);
  ticks.back().allocations.ages = {{first, {{false, 0.0, 30}, {false, 150.0, 300}}},
                                   {second, {{false, 0.0, 10}, {false, 150.0, 100}}}};

  const SiteRanking ranking = rank_sites(built(ticks), short_warmup());

  ASSERT_EQ(ranking.sites.size(), 1U);
  EXPECT_EQ(ranking.sites[0].live_bytes, 4 * 299 * kSiteMiB);
  EXPECT_NEAR(ranking.sites[0].growth_bytes_per_s, 4 * kSiteMiB, 0.1 * kSiteMiB);
  EXPECT_NEAR(ranking.sites[0].share_of_growth.value_or(0.0), 1.0, 0.03);
  ASSERT_EQ(ranking.sites[0].ages.size(), 2U);
  EXPECT_EQ(ranking.sites[0].ages[0].bytes, 40U);
  EXPECT_EQ(ranking.sites[0].ages[1].bytes, 400U);
}

TEST(SiteRanking, JudgesTheSitesOfOneStackTogether) {
  SiteRun run = one_process();
  const auto frame = run.add_frame("collate");
  // Threads that take turns: each of them grows for a while and then stands still.
  for (const double from_s : {0.0, 75.0, 150.0, 225.0}) {
    run.add_site(trainer_record().key, {frame}, [=](double t_s) {
      return static_cast<std::uint64_t>(std::clamp(t_s - from_s, 0.0, 75.0)) * kSiteMiB;
    });
  }

  const SiteRanking ranking = rank_sites(built(run, 300), short_warmup());

  ASSERT_EQ(ranking.sites.size(), 1U);
  EXPECT_EQ(ranking.sites[0].verdict, Verdict::kLeak);
  EXPECT_NEAR(ranking.sites[0].growth_bytes_per_s, kSiteMiB, 0.05 * kSiteMiB);
  EXPECT_NEAR(ranking.sites[0].share_of_growth.value_or(0.0), 1.0, 0.03);
}

TEST(SiteRanking, CountsGrowthPerStepWhereStepsAreMarked) {
  SiteRun run = one_process();
  run.with_steps = true;
  run.add_site(trainer_record().key, {run.add_frame("collate")}, rising(10 * kSiteMiB));
  Options options;
  options.warmup.steps = 300.0;

  const SiteRanking ranking = rank_sites(built(run, 300), options);

  EXPECT_EQ(ranking.sites.at(0).verdict, Verdict::kLeak);
  ASSERT_TRUE(ranking.sites[0].growth_bytes_per_step);
  EXPECT_NEAR(*ranking.sites[0].growth_bytes_per_step, kSiteMiB, 0.02 * kSiteMiB);
}

TEST(SiteRanking, DoesNotLeadWithMemoryThatWasOnlyReserved) {
  SiteRun run = one_process();
  const auto reserved = run.add_site(trainer_record().key, {run.add_frame("reserve")},
                                     rising(100 * kSiteMiB), AllocationKind::kAnonymousMap);
  run.add_site(trainer_record().key, {run.add_frame("collate")}, rising(kSiteMiB));
  run.resident = [=](std::uint32_t site) {
    return site == reserved ? std::optional<double>(0.001) : std::nullopt;
  };

  const RunSites sites = built(run, 300);
  const SiteRanking ranking = rank_sites(sites, short_warmup());

  EXPECT_EQ(sites.frames.at(ranking.sites.at(0).frames.at(0)).function, "collate");
}

TEST(SiteRanking, AddsUpOneStackInSeveralProcessesOfOneRole) {
  SiteRun run;
  ProcessRecord other = trainer_record();
  other.key = {201, 6'000};
  ProcessRecord worker = worker_record();
  for (const ProcessRecord& process : {trainer_record(), other, worker}) {
    run.add_process(process);
  }
  const auto frame = run.add_frame("collate");
  run.add_site(trainer_record().key, {frame}, rising(kSiteMiB));
  run.add_site(other.key, {frame}, rising(2 * kSiteMiB));
  run.add_site(worker.key, {frame}, rising(kSiteMiB));

  const SiteRanking ranking = rank_sites(built(run, 300), short_warmup());

  ASSERT_EQ(ranking.sites.size(), 2U);
  EXPECT_THAT(ranking.sites[0].processes, ElementsAre(other.key, trainer_record().key));
  EXPECT_NEAR(ranking.sites[0].growth_bytes_per_s, 3.0 * kSiteMiB, 0.1 * kSiteMiB);
  EXPECT_EQ(ranking.sites[0].live_bytes, 3 * 299 * kSiteMiB);
  EXPECT_THAT(ranking.sites[1].processes, ElementsAre(worker.key));
}

TEST(SiteRanking, IsGrowingAsLongAsNobodyCanTell) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("collate")}, rising(kSiteMiB));

  const SiteRanking ranking = rank_sites(built(run, 60), {});

  EXPECT_EQ(ranking.sites.at(0).verdict, Verdict::kGrowing);
  EXPECT_TRUE(ranking.sites[0].needs);
  EXPECT_NEAR(ranking.sites[0].growth_bytes_per_s, kSiteMiB, 0.05 * kSiteMiB);
}

TEST(SiteRanking, ShowsWhatALeakHeldBeforeTheProcessTidiedUp) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("collate")}, [](double t_s) {
    return t_s < 295.0 ? static_cast<std::uint64_t>(t_s) * kSiteMiB : std::uint64_t{0};
  });

  const SiteRanking ranking = rank_sites(built(run, 300), short_warmup());

  EXPECT_EQ(ranking.sites.at(0).verdict, Verdict::kLeak);
  EXPECT_EQ(ranking.sites[0].live_bytes, 294 * kSiteMiB);
}

// A leak of 1 MiB/s for 14 seconds, a look at the process while it tidies up, and its end.
SiteRun short_leak(std::uint64_t held_bytes) {
  SiteRun run = one_process();
  run.ends = true;
  run.add_site(trainer_record().key, {run.add_frame("model")}, constant(held_bytes));
  run.add_site(trainer_record().key, {run.add_frame("collate")}, [](double t_s) {
    return t_s < 14.0 ? static_cast<std::uint64_t>(t_s) * kSiteMiB : std::uint64_t{0};
  });
  return run;
}

TEST(SiteRanking, KnowsTheRateOfAShortRunThatWasSeenWhileItTidiedUp) {
  Options options;
  options.warmup.seconds = 3.0;
  for (const std::uint64_t held_bytes : {10 * kSiteMiB, 1000 * kSiteMiB}) {
    const SiteRanking ranking = rank_sites(built(short_leak(held_bytes), 16), options);

    EXPECT_EQ(ranking.sites.at(0).verdict, Verdict::kLeak);
    EXPECT_NEAR(ranking.sites[0].growth_bytes_per_s, kSiteMiB, 0.02 * kSiteMiB);
    EXPECT_EQ(ranking.sites[0].live_bytes, 13 * kSiteMiB);
  }
}

TEST(SiteRanking, TakesNoLowOfASawForTheEndOfItsProcess) {
  SiteRun run = one_process();
  run.ends = true;
  run.add_site(trainer_record().key, {run.add_frame("batch")},
               [](double t_s) { return (static_cast<std::uint64_t>(t_s) % 3U) * 20 * kSiteMiB; });
  Options options;
  options.warmup.seconds = 3.0;

  EXPECT_LT(rank_sites(built(run, 16), options).sites.at(0).verdict, Verdict::kGrowing);
}

TEST(SiteRanking, FindsALeakAmongManySitesAlthoughTheProcessTidiedUp) {
  SiteRun run = one_process();
  for (int i = 0; i < 300; ++i) {
    run.add_site(trainer_record().key, {run.add_frame("small")}, constant(kSiteMiB));
  }
  run.add_site(trainer_record().key, {run.add_frame("collate")}, [](double t_s) {
    return t_s < 297.0 ? static_cast<std::uint64_t>(t_s) * kSiteMiB : std::uint64_t{0};
  });

  const RunSites sites = built(run, 300);
  const SiteRanking ranking = rank_sites(sites, short_warmup());

  EXPECT_EQ(sites.frames.at(ranking.sites.at(0).frames.at(0)).function, "collate");
  EXPECT_EQ(ranking.sites[0].verdict, Verdict::kLeak);
}

TEST(SiteTracks, KeepWhatAProcessHeldBeforeItGaveAllBack) {
  SiteRun run = one_process();
  run.ends = true;
  run.add_site(trainer_record().key, {run.add_frame("collate")},
               [](double t_s) { return t_s < 9.0 ? 50 * kSiteMiB : std::uint64_t{0}; });

  const RunSites sites = built(run, 10);

  EXPECT_EQ(sites.sites.at(0).last.live_bytes, 50 * kSiteMiB);
  EXPECT_EQ(sites.processes.at(0).last.live_bytes, 50 * kSiteMiB);
  EXPECT_TRUE(sites.processes[0].last.has_ended);
}

TEST(SiteTracks, TakeTheLastLookAtAProcessThatWasKilled) {
  SiteRun run = one_process();
  run.ends = true;
  run.add_site(trainer_record().key, {run.add_frame("collate")}, rising(kSiteMiB));

  const RunSites sites = built(run, 10);

  EXPECT_EQ(sites.sites.at(0).last.live_bytes, 9 * kSiteMiB);
}

TEST(SiteTracks, BeginAnewAfterExec) {
  SiteTrackBuilder builder;
  Tick first;
  first.new_processes = {trainer_record()};
  first.allocations.traces = {tests::trace_sample(trainer_record().key, 0.0)};
  first.allocations.traces[0].has_ended = true;
  Tick second;
  second.t_s = 1.0;
  second.allocations.traces = {tests::trace_sample(trainer_record().key, 1.0)};

  (void)builder.add(first);
  (void)builder.add(second);

  EXPECT_EQ(builder.sites().processes.size(), 2U);
}

TEST(SiteTracks, KeepTheLastWordOnSegmentsAndOnTheAllocator) {
  SiteTrackBuilder builder;
  Tick tick;
  const ProcessKey key = trainer_record().key;
  tick.allocations.traces = {tests::trace_sample(key, 0.0)};
  tick.allocations.accounts = {{key, 0.0, 100, 10, 1, 0}};
  tick.allocations.shm = ShmGrowthReport{5, 1, {{"a", 5, 5, {}, {}}}};
  (void)builder.add(tick);
  tick.t_s = 1.0;
  tick.allocations.accounts = {{key, 1.0, 100, 30, 1, 0}};
  tick.allocations.shm = ShmGrowthReport{7, 2, {{"b", 7, 7, {}, {}}}};

  (void)builder.add(tick);

  const RunSites& run = builder.sites();
  EXPECT_EQ(run.shm.grown_bytes, 7U);
  EXPECT_EQ(value_at(run.processes.at(0).slack, 0.5), 10.0);
  EXPECT_EQ(value_at(run.processes[0].slack, 1.0), 30.0);
}

TEST(SiteRanking, KnowsThatASiteWhichCameLaterHeldNothingBefore) {
  SiteRun run = one_process();
  run.with_steps = true;
  const auto late = run.add_site(trainer_record().key, {run.add_frame("late")}, [](double t_s) {
    return t_s < 100.0 ? 0 : static_cast<std::uint64_t>(t_s - 99.0) * kSiteMiB;
  });
  SiteTrackBuilder builder;
  (void)builder.begin({});
  for (Tick& tick : run.ticks(300)) {
    if (tick.t_s < 100.0) {  // not yet known
      std::erase_if(tick.allocations.sites, [&](const auto& site) { return site.site == late; });
      tick.allocations.samples.clear();
    } else if (tick.t_s == 100.0) {
      tick.allocations.sites = run.ticks(1)[0].allocations.sites;
    }
    (void)builder.add(tick);
  }

  // With the default allowance of 500 steps, which it has outlived: it was still before.
  Options options;
  options.epoch_steps = 400.0;
  const SiteRanking ranking = rank_sites(builder.sites(), options);

  EXPECT_EQ(ranking.sites.at(0).verdict, Verdict::kLeak);
  EXPECT_NEAR(*ranking.sites[0].since.step, 1'000.0, 60.0);
}

// Twelve looks at a leak that begins after three of them.
TEST(SiteRanking, DoesNotCountTheTimeBeforeTheFirstByteIntoTheRate) {
  SiteRun run = one_process();
  run.with_steps = true;
  run.add_site(trainer_record().key, {run.add_frame("late")}, [](double t_s) {
    return t_s < 3.0 ? 0 : static_cast<std::uint64_t>(t_s - 2.0) * 10 * kSiteMiB;
  });

  const SiteRanking ranking = rank_sites(built(run, 13), {});

  EXPECT_EQ(ranking.sites.at(0).verdict, Verdict::kGrowing);
  EXPECT_NEAR(*ranking.sites[0].growth_bytes_per_step, kSiteMiB, 0.03 * kSiteMiB);
}

TEST(SiteRanking, CountsTheAllowanceInMarkedEpochs) {
  SiteRun run = one_process();
  run.with_steps = true;
  run.add_site(trainer_record().key, {run.add_frame("collate")}, rising(kSiteMiB));
  SiteTrackBuilder builder;
  (void)builder.begin({});
  for (Tick& tick : run.ticks(300)) {
    const auto second = static_cast<std::int64_t>(tick.t_s);
    if (second % 50 == 0) {
      tick.markers.push_back({tick.t_s, trainer_record().key, MarkerKind::kEpoch, second / 50, ""});
    }
    (void)builder.add(tick);
  }

  EXPECT_EQ(builder.sites().epoch_steps, 500.0);
  EXPECT_EQ(rank_sites(builder.sites(), {}).sites.at(0).verdict, Verdict::kLeak);
}

// The account of a process is of its whole time, unless something grows that is worth an account.
TEST(SiteRanking, DoesNotBeginTheAccountOfAProcessWithATinySite) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("pool")},
               [](double t_s) { return t_s < 100.0 ? kSiteMiB : 100 * kSiteMiB; });
  run.add_site(trainer_record().key, {run.add_frame("tiny")},
               [](double t_s) { return static_cast<std::uint64_t>(std::max(0.0, t_s - 200.0)); });

  const SiteRanking ranking = rank_sites(built(run, 300), short_warmup());

  EXPECT_TRUE(ranking.sites.at(0).grows());
  EXPECT_NEAR(ranking.processes.at(0).growth.sites.value_or(0.0), 99 * kSiteMiB, kSiteMiB);
}

// The last sample of memory may come when the process gives back what its sites still held.
TEST(SiteRanking, TakesNoTeardownForAShrinkingOfSomethingElse) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("collate")}, rising(kSiteMiB));
  std::vector<Tick> ticks = run.ticks(300);
  ProcessSample& last = ticks.back().processes.at(0);
  last.rss_anon_bytes = *last.rss_anon_bytes / 2;

  const SiteRanking ranking = rank_sites(built(ticks), short_warmup());

  EXPECT_NEAR(ranking.sites.at(0).share_of_growth.value_or(0.0), 1.0, 0.03);
  EXPECT_NEAR(*ranking.processes.at(0).growth.footprint, *ranking.processes[0].growth.sites,
              2 * kSiteMiB);
}

TEST(SiteRanking, NamesNoShareOfAGrowthThatHasOnlyBegun) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("collate")}, rising(10 * kSiteMiB));

  const SiteRanking ranking = rank_sites(built(run, 7), {});

  EXPECT_EQ(ranking.sites.at(0).verdict, Verdict::kGrowing);
  EXPECT_FALSE(ranking.sites[0].share_of_growth);
}

}  // namespace
}  // namespace tidemark::tracker
