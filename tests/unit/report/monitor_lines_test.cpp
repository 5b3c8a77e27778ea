// SPDX-License-Identifier: Apache-2.0
#include "report/monitor_lines.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/units.h"
#include "tests/unit/report/sample_tick.h"

namespace tidemark::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tests::kTrainer;
using tests::kWorker;
using tests::sample_record;
using tests::sample_tick;

TEST(TickLines, SaysTheChangeSinceTheStartAndSinceTheLastLine) {
  TickLines lines;
  EXPECT_EQ(lines.line(sample_tick(0), kTrainer),
            "00:00:00  tree 320 MiB (+0 B since start, +0 B since last)  rss 420 MiB  "
            "trainer[1240] 300 MiB  compile_worker x1 20.0 MiB");
  lines.line(sample_tick(1, 400), kTrainer);

  EXPECT_THAT(lines.line(sample_tick(2, 350), kTrainer),
              HasSubstr("tree 370 MiB (+50.0 MiB since start, -50.0 MiB since last)"));
}

TEST(TickLines, MarksAHeldSumAndShowsTheStep) {
  Tick tick = sample_tick(65);
  tick.tree.footprint_held = true;
  tick.step = 12;

  EXPECT_THAT(TickLines().line(tick, kTrainer),
              testing::StartsWith("00:01:05  step 12  tree ~320 MiB"));
}

TEST(TickLines, ShowsSystemAndGpu) {
  Tick tick = sample_tick(0);
  tick.system.emplace();
  tick.system->total_bytes = 1000 * kMiB;
  tick.system->available_bytes = 400 * kMiB;
  tick.system->dev_shm_unheld_bytes = 7 * kMiB;
  GpuSample& gpu = tick.gpus.emplace_back();
  gpu.used_bytes = 100 * kMiB;

  const std::string line = TickLines().line(tick, kTrainer);

  EXPECT_THAT(line, HasSubstr("system 600 MiB used, 400 MiB available"));
  EXPECT_THAT(line, HasSubstr("/dev/shm 7.00 MiB held by nobody"));
  EXPECT_THAT(line, HasSubstr("gpu0 100 MiB of ?")) << "unknown is not zero";
}

TEST(TickLines, SaysHowOldAndHowBusyAGpuIsAndWhetherItIsLost) {
  Tick tick = sample_tick(0);
  GpuSample old;
  old.index = mig_index(0, 3);
  old.used_bytes = 100 * kMiB;
  old.total_bytes = 200 * kMiB;
  old.busy_percent = 87;
  old.age_s = 12.0;
  GpuSample lost;
  lost.index = 1;
  lost.is_lost = true;
  tick.gpus = {old, lost};

  EXPECT_THAT(TickLines().line(tick, kTrainer),
              HasSubstr("  gpu0.3 100 MiB of 200 MiB, 87 % busy, 12 s old  gpu1 LOST"));
}

// What an import of RSS yields.
Tick rss_tick(double t_s, std::uint64_t mib) {
  Tick tick;
  tick.t_s = t_s;
  ProcessSample& sample = tick.processes.emplace_back();
  sample.rss_bytes = mib * kMiB;
  tick.tree.processes = 1;
  tick.tree.rss_bytes = mib * kMiB;
  tick.roles = {{Role::kTrainer, tick.tree}};
  return tick;
}

RunInfo run_info(std::optional<double> interval_s, bool time_is_steps = false) {
  RunInfo info;
  info.interval_s = interval_s;
  info.time_is_steps = time_is_steps;
  return info;
}

TEST(TickLines, FallsBackToRssUnderItsNameAndToNoOther) {
  TickLines lines;
  EXPECT_EQ(lines.line(rss_tick(0, 100), {}),
            "00:00:00  tree rss 100 MiB (+0 B since start, +0 B since last)  trainer rss 100 MiB");

  lines.line(sample_tick(1), kTrainer);  // footprint 320 MiB, rss 420 MiB

  EXPECT_THAT(lines.line(rss_tick(2, 150), {}),
              HasSubstr("tree rss 150 MiB (+50.0 MiB since start, -270 MiB since last)"));
}

TEST(TickLines, AnUnknownSizeIsNotZero) {
  Tick tick = rss_tick(0, 0);
  tick.processes[0].rss_bytes.reset();

  EXPECT_EQ(TickLines().line(tick, {}), "00:00:00  tree ?  trainer ?");
}

TEST(TickLines, CountStepsWhereThereIsNoTime) {
  Tick tick = rss_tick(1500, 100);
  tick.step = 1500;

  EXPECT_THAT(TickLines(TimeFormat::of(run_info({}, true))).line(tick, {}),
              testing::StartsWith("step 1500  tree rss 100 MiB"));
}

TEST(TickLines, HaveDecimalsWhereSamplesAreLessThanASecondApart) {
  const auto line = [](std::optional<double> interval_s) {
    return TickLines(TimeFormat::of(run_info(interval_s))).line(sample_tick(1.3), kTrainer);
  };

  EXPECT_THAT(line(0.25), testing::StartsWith("00:00:01.30  tree"));
  EXPECT_THAT(line(1.0), testing::StartsWith("00:00:01  tree"));
  EXPECT_THAT(line(std::nullopt), testing::StartsWith("00:00:01.30  tree")) << "imported";
}

TEST(EventLines, HaveTheTimeOfTheOtherLines) {
  Tick tick = sample_tick(3.5);
  tick.events.push_back({3.5, EventKind::kWarnGrowth, {}, "the tree grew"});
  tick.losses = {{3.5, LossKind::kPssDenied, 1}};

  const TimeFormat close = TimeFormat::of(run_info(0.5));
  EXPECT_THAT(event_lines(tick, sample_record, close),
              ElementsAre("00:00:03.50  WARNING  the tree grew"));
  EXPECT_THAT(LossLines(close).lines(tick),
              ElementsAre("00:00:03.50  not seen: how the pages of another user's process are "
                          "shared: its footprint is estimated (once)"));
  const TimeFormat steps = TimeFormat::of(run_info({}, true));
  EXPECT_THAT(event_lines(tick, sample_record, steps),
              ElementsAre("step 3.5  WARNING  the tree grew"));
}

TEST(EventLines, ManyAlikeAreOneLine) {
  Tick tick = sample_tick(3);
  for (int i = 0; i < 20; ++i) {
    tick.events.push_back({3, EventKind::kSpawn, {1300 + i, 1}, "compile_worker python3"});
  }

  EXPECT_THAT(event_lines(tick, sample_record),
              ElementsAre("00:00:03  started  other x20  pids 1300, 1301, 1302, 1303, ..."));
}

TEST(EventLines, AFewAreALineEachAndNamesAreEscaped) {
  Tick tick = sample_tick(3);
  tick.events.push_back({3, EventKind::kExit, kWorker, "compile_worker evil\x1b[2J"});
  tick.events.push_back({3, EventKind::kWarnGrowth, {}, "the tree grew by 1 GiB"});

  EXPECT_THAT(event_lines(tick, sample_record),
              ElementsAre("00:00:03  exited  pid 1241  compile_worker evil\\x1b[2J",
                          "00:00:03  WARNING  the tree grew by 1 GiB"));
}

TEST(LossLines, TellEachKindOnce) {
  LossLines lines;
  Tick tick = sample_tick(3);
  tick.losses = {{3, LossKind::kPssDenied, 2}};
  EXPECT_THAT(lines.lines(tick),
              ElementsAre("00:00:03  not seen: how the pages of another user's process are "
                          "shared: its footprint is estimated (2 times)"));

  tick.losses = {{4, LossKind::kPssDenied, 1}, {4, LossName("gpu_\x1b[2J"), 1}};
  EXPECT_THAT(lines.lines(tick), ElementsAre("00:00:03  not seen: gpu_\\x1b[2J (once)"));
}

TEST(SummaryText, GivesGrowthRatesAndLosses) {
  RunSummary summary;
  Tick first = sample_tick(0);
  first.step = 0;
  Tick last = sample_tick(60, 400);
  last.step = 50;
  last.losses.push_back({60, LossKind::kPssDenied, 3});
  summary.add(first);
  summary.add(last);

  const std::string text = summary_text(summary);

  EXPECT_THAT(text, HasSubstr("320 MiB -> 420 MiB, peak 420 MiB at 00:01:00, growth +100 MiB, "
                              "+100 MiB/min, +2.00 MiB/step"));
  EXPECT_THAT(text, HasSubstr("trainer x1"));
  EXPECT_THAT(text, HasSubstr("shared: its footprint is estimated (3 times)"));
}

TEST(SummaryText, CountsKilledProcesses) {
  const auto text_of = [](std::uint32_t kills) {
    RunSummary summary;
    Tick tick = sample_tick(0);
    EventRecord kill{0.0, EventKind::kOomKill, {}, ""};
    kill.count = kills;
    tick.events.push_back(kill);
    summary.add(tick);
    return summary_text(summary);
  };

  EXPECT_THAT(text_of(1), HasSubstr("OOM killer ended 1 process\n"));
  EXPECT_THAT(text_of(2), HasSubstr("OOM killer ended 2 processes\n"));
}

TEST(SummaryText, OfRssAloneSaysSo) {
  RunSummary summary;
  summary.add(rss_tick(0, 100));
  summary.add(rss_tick(60, 160));

  EXPECT_EQ(summary_text(summary),
            "summary: 1 min 00 s in 2 samples, 0 started, 0 exited\n"
            "  tree rss               100 MiB -> 160 MiB, peak 160 MiB at 00:01:00, growth +60.0 "
            "MiB, +60.0 MiB/min\n"
            "  trainer x1 rss         100 MiB -> 160 MiB, peak 160 MiB at 00:01:00, growth +60.0 "
            "MiB, +60.0 MiB/min\n");
}

TEST(SummaryText, HasNoMinutesWhereThereIsNoTime) {
  RunSummary summary;
  for (const int step : {0, 60}) {
    Tick tick = rss_tick(step, 100U + static_cast<unsigned>(step));
    tick.step = step;
    summary.add(tick);
  }

  const std::string text = summary_text(summary, TimeFormat::of(run_info({}, true)));

  EXPECT_THAT(text, testing::StartsWith("summary: 60 steps in 2 samples"));
  EXPECT_THAT(text, HasSubstr("peak 160 MiB at step 60, growth +60.0 MiB, +1.00 MiB/step\n"));
  EXPECT_THAT(text, Not(HasSubstr("/min")));
}

TEST(SummaryText, SaysWhenNothingWasSeen) {
  EXPECT_EQ(summary_text(RunSummary()), "summary: nothing was seen\n");
}

TEST(TreeText, ShowsChildrenBelowTheirParentsWithRoles) {
  const std::string text = tree_text(sample_tick(0), sample_record);

  EXPECT_THAT(text, HasSubstr("\n1240 "));
  EXPECT_THAT(text, HasSubstr("\n  1241 "));
  EXPECT_THAT(text, HasSubstr("compile_worker"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("evil\\x1b[2J\\xff --x"));
}

TEST(TreeText, ShowsAZombieAndSurvivesAnUnknownProcess) {
  Tick tick = sample_tick(0);
  tick.processes[1].state = 'Z';
  tick.processes.push_back(tests::process_sample({9, 9}, 1));

  const std::string text = tree_text(tick, sample_record);

  EXPECT_THAT(text, HasSubstr("zombie"));
  EXPECT_THAT(text, HasSubstr("\n9 "));
}

TEST(TreeText, WorkersThatAreAlikeShareTwoRows) {
  Tick tick = sample_tick(0);
  std::map<ProcessKey, ProcessRecord> records;
  for (pid_t pid = 1300; pid < 1320; ++pid) {
    tick.processes.push_back(
        tests::process_sample({pid, 600}, static_cast<std::uint64_t>(pid - 1290)));
    ProcessRecord record = *sample_record(tests::kWorker);
    record.argv = "pool";
    records[{pid, 600}] = record;
  }

  const std::string text = tree_text(tick, [&](const ProcessKey& key) {
    const auto it = records.find(key);
    return it == records.end() ? sample_record(key) : &it->second;
  });

  EXPECT_THAT(text, HasSubstr("\n  1300 "));
  EXPECT_THAT(text, Not(HasSubstr("\n  1301 ")));
  EXPECT_THAT(text, HasSubstr("and 19 more like it, 11.0 MiB to 29.0 MiB each, up to pid 1319"));
}

// Imported series have pid 0, and so has the parent that nobody knows.
TEST(TreeText, ShowsAProcessWithoutAPidOnce) {
  Tick tick;
  tick.processes.emplace_back().rss_bytes = 100 * kMiB;
  ProcessRecord record;
  record.role = Role::kTrainer;

  EXPECT_EQ(tree_text(tick, [&](const ProcessKey&) { return &record; }),
            "PID                  ROLE                FOOTPRINT        RSS  COMMAND\n"
            "?                    trainer                     ?    100 MiB  ?\n");
}

TEST(TreeText, SaysThatSizesAreOfRssOrUnknown) {
  Tick tick;
  std::map<ProcessKey, ProcessRecord> records;
  for (pid_t pid = 10; pid < 15; ++pid) {
    tick.processes.emplace_back().key = {pid, 1};
    records[{pid, 1}].argv = "pool";
  }
  const auto text = [&] {
    return tree_text(tick, [&](const ProcessKey& key) { return &records.at(key); });
  };
  EXPECT_THAT(text(), HasSubstr("and 4 more like it, ? each, up to pid 14"));

  tick.processes[2].rss_bytes = 3 * kMiB;
  tick.processes[3].rss_bytes = 5 * kMiB;

  EXPECT_THAT(text(), HasSubstr("and 4 more like it, rss 3.00 MiB to 5.00 MiB each, up to pid 14"));
}

TEST(TreeText, NamesSeriesThatDifferInTheirNameOnly) {
  Tick tick;
  std::map<ProcessKey, ProcessRecord> records;
  for (std::uint64_t number = 1; number <= 5; ++number) {
    tick.processes.emplace_back().key = {0, number};
    records[{0, number}].comm = "series" + std::to_string(number);
  }

  const std::string text = tree_text(tick, [&](const ProcessKey& key) { return &records.at(key); });

  EXPECT_THAT(text, Not(HasSubstr("more like it")));
  EXPECT_THAT(text, HasSubstr("[series5]"));
}

}  // namespace
}  // namespace tidemark::report
