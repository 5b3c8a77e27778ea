// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/profile_report.h"
#include "cli/profile_text.h"
#include "tests/support/site_run.h"
#include "tracker/site_tracks.h"

namespace tidemark::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using tests::kSiteMiB;
using tests::rising;
using tests::SiteRun;
using tests::trainer_record;

// A program with an allocator that no hook reaches: it takes 4 MiB a second.
tracker::RunSites built_unseen() {
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

}  // namespace
}  // namespace tidemark::cli
