// SPDX-License-Identifier: Apache-2.0
#include "dashboard/live_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/site_run.h"

namespace tidemark::dashboard {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using tests::kSiteMiB;

constexpr ProcessKey kTrainer{110, 2};

tests::SiteRun traced_run() {
  tests::SiteRun run;
  ProcessRecord trainer;
  trainer.key = kTrainer;
  trainer.role = Role::kTrainer;
  run.add_process(trainer);
  return run;
}

tracker::JudgeOptions after(double warmup_s) {
  tracker::JudgeOptions judging;
  judging.warmup.seconds = warmup_s;
  return judging;
}

TEST(SiteJudge, ListsWhatGrowsTheFastestFirst) {
  tests::SiteRun run = traced_run();
  run.add_site(kTrainer, {run.add_frame("slow")}, [](double t_s) {
    return 10 * kSiteMiB + static_cast<std::uint64_t>(t_s) * kSiteMiB / 4;
  });
  run.add_site(kTrainer, {run.add_frame("still")}, [](double) { return 900 * kSiteMiB; });
  run.add_site(kTrainer, {run.add_frame("fast")}, [](double t_s) {
    return 10 * kSiteMiB + static_cast<std::uint64_t>(t_s) * kSiteMiB;
  });
  SiteJudge judge;
  for (const Tick& tick : run.ticks(240)) {
    judge.add(tick);
  }

  const std::vector<SiteRow> rows = judge.rows(after(20.0), 6);

  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].place, "fast [train]");
  EXPECT_EQ(rows[0].verdict, "leak");
  EXPECT_EQ(rows[0].live_bytes, 249 * kSiteMiB);
  ASSERT_TRUE(rows[0].rate_bytes_per_s);
  EXPECT_NEAR(*rows[0].rate_bytes_per_s, kSiteMiB, 0.05 * kSiteMiB);
  EXPECT_EQ(rows[1].place, "slow [train]");
  EXPECT_THAT(judge.rows(after(20.0), 1), SizeIs(1));
}

TEST(SiteJudge, AddsUpTheCallStacksOfALine) {
  tests::SiteRun run = traced_run();
  const std::uint32_t caller = run.add_frame("collate");
  for (const char* const callee : {"copy", "pad"}) {
    run.add_site(
        kTrainer, {run.add_frame(callee, "", {}, "/usr/lib/libtorch_cpu.so"), caller},
        [](double t_s) { return 10 * kSiteMiB + static_cast<std::uint64_t>(t_s) * kSiteMiB; });
  }
  SiteJudge judge;
  for (const Tick& tick : run.ticks(240)) {
    judge.add(tick);
  }

  const std::vector<SiteRow> rows = judge.rows(after(20.0), 6);

  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].place, "collate [train]");
  ASSERT_TRUE(rows[0].rate_bytes_per_s);
  EXPECT_NEAR(*rows[0].rate_bytes_per_s, 2 * kSiteMiB, 0.1 * kSiteMiB);
}

TEST(SiteJudge, ShowsTheLineOfPython) {
  tests::SiteRun run = traced_run();
  run.add_site(kTrainer,
               {run.add_frame("at::_ops::cat::call()+0x1", "", {}, "/usr/lib/libtorch_cpu.so"),
                run.add_python("collate", "/home/me/train.py", 42)},
               tests::rising(kSiteMiB));
  SiteJudge judge;
  for (const Tick& tick : run.ticks(240)) {
    judge.add(tick);
  }

  const std::vector<SiteRow> rows = judge.rows(after(20.0), 6);

  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].place, "train.py:42 in collate calling at::_ops::cat");
}

TEST(SiteJudge, HasNothingToShowWhereNothingGrows) {
  tests::SiteRun run = traced_run();
  run.add_site(kTrainer, {run.add_frame("still")}, [](double) { return 900 * kSiteMiB; });
  SiteJudge judge;
  EXPECT_THAT(judge.rows({}, 6), IsEmpty());

  for (const Tick& tick : run.ticks(60)) {
    judge.add(tick);
  }

  EXPECT_THAT(judge.rows(after(5.0), 6), IsEmpty());
}

TEST(SiteJudge, ShowsNothingOfATracerThatRests) {
  tests::SiteRun run = traced_run();
  run.add_site(kTrainer, {run.add_frame("fast")}, [](double t_s) {
    return 10 * kSiteMiB + static_cast<std::uint64_t>(t_s) * kSiteMiB;
  });
  SiteJudge judge;
  for (Tick tick : run.ticks(240)) {
    for (TraceSample& trace : tick.allocations.traces) {
      trace.mode = TraceMode::kDormant;
    }
    judge.add(tick);
  }

  EXPECT_THAT(judge.rows(after(20.0), 6), IsEmpty());
}

}  // namespace
}  // namespace tidemark::dashboard
