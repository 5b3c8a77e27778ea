// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "report/profile_report.h"
#include "report/profile_text.h"
#include "tests/support/site_run.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using tests::kSiteMiB;
using tests::rising;
using tests::SiteRun;
using tests::trainer_record;

// A program with an allocator that no hook reaches: it takes 4 MiB a second.
tracker::RunSites built_unseen(std::uint64_t live_blocks = 0, std::uint64_t dropped = 0) {
  SiteRun run;
  run.add_process(trainer_record());
  run.add_site(trainer_record().key, {run.add_frame("fopen")}, tests::constant(4096));
  run.add_site(trainer_record().key, {run.add_frame("sbrk")}, rising(4 * kSiteMiB),
               AllocationKind::kAllocatorMap);
  tracker::SiteTrackBuilder builder;
  (void)builder.begin({});
  for (Tick& tick : run.ticks(120)) {
    const auto heap = static_cast<std::uint64_t>(tick.t_s) * 4 * kSiteMiB;
    tick.processes.at(0).rss_anon_bytes = heap + kSiteMiB;
    tick.allocations.accounts = {
        {trainer_record().key, tick.t_s, 4096, heap, kSiteMiB, /*tracer_bytes=*/0}};
    tick.allocations.traces.at(0).live_blocks = live_blocks;
    tick.allocations.traces.at(0).dropped_records = dropped;
    (void)builder.add(tick);
  }
  return builder.sites();
}

TEST(ProfileText, DoesNotBlameTheAllocatorForWhatItNeverSaw) {
  const tracker::RunSites run = built_unseen();

  const std::string text = profile_text(make_report(run, {}, 10), {});

  EXPECT_THAT(text, StartsWith("NOT SEEN: the allocations of this job are not seen, its call "
                               "stacks explain 0.0 % of the memory of\ntrainer, pid 101"));
  EXPECT_THAT(text, HasSubstr("unseen   477 MiB of this process were allocated where the tracer "
                              "does not look"));
  EXPECT_THAT(text, Not(HasSubstr("remedy")));
  EXPECT_THAT(text, Not(HasSubstr("leak of a line")));
}

TEST(ProfileText, LeadsWithLostRecordsAndBlamesNobodyForThem) {
  const tracker::RunSites run = built_unseen(1'000, 3'000);

  const std::string text = profile_text(make_report(run, {}, 10), {});

  EXPECT_THAT(text, StartsWith("RECORDS LOST: 3,000 blocks, stacks or mappings found no place in "
                               "the tracer's tables, about 75 % of\nall"));
  EXPECT_THAT(text, HasSubstr("Whether a line grows cannot be told."));
  EXPECT_THAT(text, HasSubstr("holds    unclear "));
  EXPECT_THAT(text, HasSubstr("not recorded, or allocator slack"));
  for (const char* blame : {"remedy", "unseen", "NOTHING GROWS", "NOT SEEN", "NO LINE GROWS"}) {
    EXPECT_THAT(text, Not(HasSubstr(blame)));
  }
}

TEST(ProfileJson, HasTheShareThatIsLostWhereItMatters) {
  const tracker::RunSites many = built_unseen(1'000, 3'000);
  const tracker::RunSites few = built_unseen(10'000, 10);

  EXPECT_THAT(profile_json(make_report(many, {}, 10)), HasSubstr("\"lost_share\":0.75,"));
  EXPECT_THAT(profile_json(make_report(few, {}, 10)), HasSubstr("\"lost_share\":null,"));
}

TEST(ProfileText, LeadsWithLostRecordsAlsoWhereALineGrows) {
  SiteRun run;
  run.add_process(trainer_record());
  run.add_site(trainer_record().key, {run.add_frame("leak", "/src/a.cpp", 7)}, rising(kSiteMiB));
  tracker::SiteTrackBuilder builder;
  (void)builder.begin({});
  for (Tick& tick : run.ticks(120)) {
    tick.allocations.traces.at(0).live_blocks = 90;
    tick.allocations.traces.at(0).dropped_records = 10;
    (void)builder.add(tick);
  }
  const tracker::RunSites sites = builder.sites();

  const std::string text = profile_text(make_report(sites, {}, 10), {});

  EXPECT_THAT(text, StartsWith("RECORDS LOST: 10 blocks"));
  EXPECT_THAT(text, HasSubstr("GROWING: leak a.cpp:7"));
}

TEST(ProfileReport, KnowsTheShareOfKnownFreesOnlyInExactMode) {
  tracker::RunSites run = built_unseen();
  const ProfileReport exact = make_report(run, {}, 10);
  run.processes.at(0).last.mode = TraceMode::kSampled;
  const ProfileReport sampled = make_report(run, {}, 10);

  EXPECT_EQ(exact.coverage.frees_known_share, 1.0);
  EXPECT_EQ(sampled.coverage.frees_known_share, std::nullopt);
  EXPECT_THAT(profile_text(exact, {}), HasSubstr("frees known 100.0 %"));
  EXPECT_THAT(profile_text(sampled, {}), Not(HasSubstr("frees known")));
}

TEST(ProfileReport, CountsALostSampleForTheBlocksThatItStandsFor) {
  tracker::RunSites run = built_unseen(10'000, 10);
  const auto exact = lost_records(make_report(run, {}, 10));
  run.processes.at(0).last.live_bytes = 10'000ULL * 100;  // blocks of 100 bytes
  run.processes.at(0).last.sample_every_bytes = 100'000;
  const auto sampled = lost_records(make_report(run, {}, 10));

  EXPECT_FALSE(exact);
  ASSERT_TRUE(sampled);
  EXPECT_EQ(sampled->records, 10U);
  EXPECT_DOUBLE_EQ(sampled->share, 0.5);
}

}  // namespace
}  // namespace tidemark::report
