// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

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

ProcessRecord child(pid_t pid, const std::string& comm) {
  ProcessRecord process;
  process.key = {pid, 1};
  process.comm = comm;
  return process;
}

ProcessSample sample_of(const ProcessKey& key, std::uint64_t bytes) {
  ProcessSample sample;
  sample.key = key;
  sample.rss_anon_bytes = bytes;
  sample.rss_shmem_bytes = 0;
  sample.state = 'S';
  return sample;
}

// A trainer whose sites grow or not, and two children that grow and are not traced.
tracker::RunSites built_run(const SiteRun::Curve& traced, std::size_t untraced = 2) {
  SiteRun run;
  run.add_process(trainer_record());
  run.add_site(trainer_record().key, {run.add_frame("leak", "/src/a.cpp", 7)}, traced);
  const std::vector<ProcessRecord> children = {child(501, "job"), child(502, "helper")};
  tracker::SiteTrackBuilder builder;
  (void)builder.begin({});
  for (Tick& tick : run.ticks(61)) {
    for (std::size_t i = 0; i < untraced; ++i) {
      if (tick.t_s == 0.0) {
        tick.new_processes.push_back(children[i]);
      }
      const auto second = static_cast<std::uint64_t>(tick.t_s);
      tick.processes.push_back(sample_of(children[i].key, (second / (4 * i + 1)) * kSiteMiB));
    }
    if (tick.t_s == 1.0 && untraced > 0) {
      tick.allocations.untraced = {{children[0].key, UntracedReason::kStatic}};
    }
    (void)builder.add(tick);
  }
  return builder.sites();
}

TEST(ProfileText, LeadsWithGrowthThatWasNotTraced) {
  const tracker::RunSites run = built_run(tests::constant(kSiteMiB));

  const std::string text = profile_text(make_report(run, {}, 10), {});

  EXPECT_THAT(text, StartsWith("NOT SEEN: pid 501 (job) grew by 60.0 MiB and was not traced, "
                               "because it is statically linked."));
  EXPECT_THAT(text, HasSubstr("1 more\nprocess that was not traced grew by 12.0 MiB"));
  EXPECT_THAT(text, HasSubstr("No call stack of the 1 traced process keeps growing."));
  EXPECT_THAT(text, HasSubstr("untraced pid 501 (job): +60.0 MiB since 00:00:00, now 60.0 MiB"));
  EXPECT_THAT(text, HasSubstr("pid 502 (helper): +12.0 MiB since 00:00:00, now 12.0 MiB; why is "
                              "not known"));
  EXPECT_THAT(text, Not(HasSubstr("NOTHING GROWS")));
}

TEST(ProfileText, SaysWhatWasNotTracedAfterALineThatGrows) {
  const tracker::RunSites run = built_run(rising(kSiteMiB));

  const std::string text = profile_text(make_report(run, {}, 10), {});

  EXPECT_THAT(text, StartsWith("GROWING: leak a.cpp:7"));
  EXPECT_THAT(text.substr(0, text.find("\n\n")), HasSubstr("NOT\nSEEN: pid 501 (job)"));
}

TEST(ProfileText, FindsNothingThatGrowsWhereAllWasTraced) {
  const tracker::RunSites run = built_run(tests::constant(kSiteMiB), 0);

  EXPECT_THAT(profile_text(make_report(run, {}, 10), {}), StartsWith("NOTHING GROWS"));
}

TEST(ProfileText, NamesAProcessAlsoWhereNoneWasTraced) {
  tracker::SiteTrackBuilder builder;
  for (int second = 0; second < 60; ++second) {
    Tick tick;
    tick.t_s = second;
    tick.processes = {sample_of({501, 1}, static_cast<std::uint64_t>(second) * kSiteMiB)};
    (void)builder.add(tick);
  }

  EXPECT_THAT(profile_text(make_report(builder.sites(), {}, 10), {}),
              StartsWith("NOT SEEN: pid 501"));
}

TEST(ProfileJson, ListsWhatWasNotTraced) {
  const tracker::RunSites run = built_run(tests::constant(kSiteMiB));

  const std::string json = profile_json(make_report(run, {}, 10));

  EXPECT_THAT(json, HasSubstr("\"untraced\":[{\"pid\":501,\"start_ticks\":1,\"role\":\"other\","
                              "\"comm\":\"job\",\"reason\":\"static\""));
  EXPECT_THAT(json, HasSubstr("\"growth_bytes\":62914560,\"keeps_growing\":true"));
}

TEST(ProfileText, SaysThatAnOptionWhichCountsStepsDoesNotApply) {
  const tracker::RunSites run = built_run(rising(kSiteMiB), 0);
  tracker::JudgeOptions judge;
  judge.warmup.steps = 50.0;
  judge.min_leak = Rate{1000.0, RateUnit::kStep};

  const ProfileReport report = make_report(run, judge, 10);

  EXPECT_THAT(profile_text(report, {}),
              HasSubstr("note     --warmup counts steps, and too few are known here: the automatic "
                        "allowance applies"));
  EXPECT_THAT(profile_text(report, {}), HasSubstr("note     --min-leak counts steps"));
  EXPECT_THAT(profile_json(report), HasSubstr("\"ignored_options\":[\"warmup\",\"min_leak\"]"));
  EXPECT_THAT(profile_text(make_report(run, {}, 10), {}), Not(HasSubstr("note     ")));
}

}  // namespace
}  // namespace tidemark::report
