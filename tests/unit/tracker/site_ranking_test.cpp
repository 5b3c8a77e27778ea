// SPDX-License-Identifier: Apache-2.0
#include "tracker/site_ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/site_run.h"

namespace tidemark::tracker {
namespace {

using testing::ElementsAre;
using tests::constant;
using tests::kSiteMiB;
using tests::rising;
using tests::SiteRun;
using tests::trainer_record;
using tests::worker_record;

RunSites built(const SiteRun& run, std::size_t seconds) {
  SiteTrackBuilder builder;
  (void)builder.begin({});
  for (const Tick& tick : run.ticks(seconds)) {
    (void)builder.add(tick);
  }
  return builder.sites();
}

SiteRun one_process() {
  SiteRun run;
  run.add_process(trainer_record());
  return run;
}

Options short_warmup() {
  Options options;
  options.warmup.seconds = 60.0;
  return options;
}

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

TEST(SiteRanking, PutsTheFasterBeforeTheSlower) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("slow")}, rising(kSiteMiB / 8, 500 * kSiteMiB));
  run.add_site(trainer_record().key, {run.add_frame("fast")}, rising(kSiteMiB));

  const RunSites sites = built(run, 300);
  const SiteRanking ranking = rank_sites(sites, short_warmup());

  EXPECT_EQ(sites.frames.at(ranking.sites.at(0).frames.at(0)).function, "fast");
}

TEST(SiteRanking, SaysWhichShareOfTheGrowthASiteExplains) {
  SiteRun run = one_process();
  run.add_site(trainer_record().key, {run.add_frame("most")}, rising(3 * kSiteMiB));
  run.add_site(trainer_record().key, {run.add_frame("some")}, rising(kSiteMiB));

  const SiteRanking ranking = rank_sites(built(run, 300), short_warmup());

  ASSERT_TRUE(ranking.sites[0].share_of_growth && ranking.sites[1].share_of_growth);
  EXPECT_NEAR(*ranking.sites[0].share_of_growth, 0.75, 0.02);
  EXPECT_NEAR(*ranking.sites[1].share_of_growth, 0.25, 0.02);
  EXPECT_NEAR(*ranking.processes.at(0).footprint_bytes, ranking.processes[0].sites_bytes,
              2 * kSiteMiB);
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

TEST(SiteTracks, DoNotCountTheFileOfTheTracerAsTheProcess) {
  SiteTrackBuilder builder;
  Tick tick;
  tick.allocations.traces = {tests::trace_sample(trainer_record().key, 0.0)};
  tick.allocations.traces[0].file_bytes = 300;
  ProcessSample sample;
  sample.key = trainer_record().key;
  sample.rss_anon_bytes = 1'000;
  sample.rss_shmem_bytes = 400;
  sample.state = 'R';
  tick.processes = {sample};

  (void)builder.add(tick);

  EXPECT_EQ(value_at(builder.sites().processes.at(0).footprint, 0.0), 1'100.0);
}

}  // namespace
}  // namespace tidemark::tracker
