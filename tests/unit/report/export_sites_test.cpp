// SPDX-License-Identifier: Apache-2.0
#include "report/export_sites.h"

#include <gtest/gtest.h>

#include "tests/support/site_run.h"

namespace tidemark::report {
namespace {

using tests::kSiteMiB;
using tests::SiteRun;
using tests::trainer_record;
using tests::worker_record;

constexpr std::size_t kSeconds = 100;
constexpr double kWorkerEndS = 40.0;

// A trainer whose site holds 10 MiB until second 60 and nothing from then on, and a worker that
// holds 4 MiB until it ends at second 40.
tracker::RunSites spike_and_worker() {
  SiteRun run;
  run.add_process(trainer_record());
  run.add_process(worker_record());
  run.add_site(trainer_record().key, {run.add_frame("spike")},
               [](double t_s) { return t_s < 60.0 ? 10 * kSiteMiB : 0; });
  const auto of_worker =
      run.add_site(worker_record().key, {run.add_frame("load")}, tests::constant(4 * kSiteMiB));
  tracker::SiteTrackBuilder builder;
  for (Tick& tick : run.ticks(kSeconds)) {
    for (ModuleRecord& module : tick.allocations.modules) {
      module.build_id = "abc" + std::to_string(module.module);
    }
    for (SiteSample& sample : tick.allocations.samples) {
      sample.alloc_bytes = 100 * kSiteMiB;
      sample.alloc_blocks = 400;  // of 256 KiB
    }
    if (tick.t_s == kWorkerEndS) {
      tick.allocations.traces.at(1).has_ended = true;
    } else if (tick.t_s > kWorkerEndS) {
      tick.allocations.traces.pop_back();
      tick.processes.pop_back();
      std::erase_if(tick.allocations.samples,
                    [&](const SiteSample& sample) { return sample.site == of_worker; });
    }
    (void)builder.add(tick);
  }
  return builder.sites();
}

TEST(MakeProfile, CountsTheBlocksOfASiteThatHoldsNothingAtTheEnd) {
  const Profile profile = make_profile(spike_and_worker(), {}, 50.0);

  EXPECT_EQ(profile.sites.at(0).live_bytes, 10.0 * kSiteMiB);
  EXPECT_EQ(profile.sites.at(0).live_blocks, 40.0);
}

TEST(MakeProfile, LeavesOutWhatProcessesHeldThatHadEnded) {
  const tracker::RunSites run = spike_and_worker();

  EXPECT_EQ(make_profile(run, {}, {}).sites.at(1).live_bytes, 0.0);
  EXPECT_EQ(make_profile(run, {}, 60.0).sites.at(1).live_bytes, 0.0);
  EXPECT_EQ(make_profile(run, {}, 30.0).sites.at(1).live_bytes, 4.0 * kSiteMiB);
  EXPECT_EQ(make_profile(run, 20.0, 60.0).sites.at(1).growth_bytes, -4.0 * kSiteMiB);
  EXPECT_EQ(make_profile(run, 60.0, 80.0).sites.at(1).growth_bytes, 0.0);
  EXPECT_EQ(make_profile(run, {}, {}).sites.at(1).alloc_bytes, 100.0 * kSiteMiB);
}

TEST(MakeProfile, KeepsWhatAProcessHeldThatEndedWithTheRun) {
  SiteRun run;
  run.ends = true;
  run.add_process(trainer_record());
  run.add_site(trainer_record().key, {run.add_frame("model")}, tests::constant(kSiteMiB));
  tracker::SiteTrackBuilder builder;
  for (const Tick& tick : run.ticks(kSeconds)) {
    (void)builder.add(tick);
  }

  EXPECT_EQ(make_profile(builder.sites(), {}, {}).sites.at(0).live_bytes, 1.0 * kSiteMiB);
}

TEST(MakeProfile, TellsTheBuildIdsOfModules) {
  const Profile profile = make_profile(spike_and_worker(), {}, {});

  EXPECT_EQ(profile.frames.at(profile.sites.at(0).frames.at(0)).build_id, "abc1");
  EXPECT_EQ(profile.frames.at(profile.sites.at(1).frames.at(0)).build_id, "abc2");
}

TEST(MakeProfile, BeginsWhereItsTimeBegins) {
  const tracker::RunSites run = spike_and_worker();

  const Profile part = make_profile(run, 20.0, 50.0, 1'000'000'000'000);

  EXPECT_EQ(part.start_unix_ns, 1'020'000'000'000);
  EXPECT_EQ(part.duration_ns, 30'000'000'000);
  EXPECT_EQ(make_profile(run, {}, {}, 1'000'000'000'000).start_unix_ns, 1'000'000'000'000);
  EXPECT_EQ(make_profile(run, 20.0, {}).start_unix_ns, 0);  // unknown
}

}  // namespace
}  // namespace tidemark::report
