// SPDX-License-Identifier: Apache-2.0
#include "report/profile_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/text.h"
#include "report/export_sites.h"
#include "report/profile_text.h"
#include "tests/support/golden.h"
#include "tests/support/site_run.h"
#include "tracker/sites/frame_text.h"

namespace tidemark::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using tests::constant;
using tests::difference_from_golden;
using tests::kSiteMiB;
using tests::rising;
using tests::SiteRun;
using tests::trainer_record;

tracker::RunSites built(const SiteRun& run, std::size_t seconds,
                        const std::vector<SiteAges>& ages = {}) {
  tracker::SiteTrackBuilder builder;
  for (Tick& tick : run.ticks(seconds)) {
    tick.allocations.ages = ages;
    (void)builder.add(tick);
  }
  return builder.sites();
}

tracker::JudgeOptions short_warmup() {
  tracker::JudgeOptions options;
  options.warmup.steps = 600.0;
  return options;
}

std::vector<SiteAges> even_ages() {
  SiteAges ages;
  ages.site = 1;
  for (double step = 0.0; step < 3'000.0; step += 100.0) {
    ages.intervals.push_back({true, step, 10 * kSiteMiB});
  }
  return {ages};
}

// A trainer that leaks in collate(), with the usual frames around it, and holds a model.
SiteRun leaking_trainer() {
  SiteRun run;
  run.add_process(trainer_record());
  run.with_steps = true;
  const auto tracer = run.add_frame("malloc", "", {}, "/opt/lib/libtidemark_tracer.so");
  const auto operator_new = run.add_frame("operator new(unsigned long)", "", {},
                                          "/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
  const auto vector = run.add_frame("std::vector<Batch>::push_back(Batch&&)",
                                    "/usr/include/c++/12/bits/stl_vector.h", 1287);
  const auto collate = run.add_frame("collate(Batch const&)", "/home/me/src/loader.cpp", 42);
  const auto main = run.add_frame("main", "/home/me/src/train.cpp", 7);
  const auto start = run.add_frame("__libc_start_main@@GLIBC_2.34", "", {}, "/lib/libc.so.6");
  run.add_site(trainer_record().key, {tracer, operator_new, vector, collate, main, start},
               rising(kSiteMiB));
  const auto model = run.add_frame("Model::Model()", "/home/me/src/model.cpp", 12);
  run.add_site(trainer_record().key, {tracer, operator_new, model, main, start},
               constant(700 * kSiteMiB));
  return run;
}

ProfileReport report_of(const tracker::RunSites& run) {
  ProfileReport report = make_report(run, short_warmup(), 10);
  report.command = "python train.py --token ***";
  report.shm = {30 * kSiteMiB, 2, {{"torch_1", 20 * kSiteMiB, 20 * kSiteMiB, false, {}}}};
  report.losses = {{"markers_lost", 3}};
  return report;
}

TEST(ProfileText, LooksAsInTheGoldenFile) {
  const tracker::RunSites run = built(leaking_trainer(), 300, even_ages());

  EXPECT_EQ(difference_from_golden("profile/leak.txt",
                                   profile_text(report_of(run), {Glyphs::kAscii, false})),
            "");
}

TEST(ProfileText, SaysWhichPartOfTheGrowthALineIs) {
  const tracker::RunSites run = built(leaking_trainer(), 300);
  const ProfileReport report = report_of(run);
  const auto share = [&](std::optional<double> part) {
    tracker::RankedLine line = report.lines().front();
    line.share_of_growth = part;
    return share_text(report, line);
  };
  EXPECT_EQ(share(std::nullopt), "in trainer, pid 101 (train.py)");
  EXPECT_EQ(share(0.984), "98 % of the growth of trainer, pid 101 (train.py)");
  EXPECT_EQ(share(0.997), "all of the growth of trainer, pid 101 (train.py)");
  EXPECT_EQ(share(1.09), "all of the growth of trainer, pid 101 (train.py)");
  EXPECT_EQ(
      share(1.3),
      "more than the whole growth of trainer, pid 101 (train.py), which freed other memory or "
      "has not yet used all of this");
}

// What a job held before it was attached to is in no site: only its growth can be set beside them.
TEST(ProfileCoverage, HasThePartOfTheGrowthThatSitesExplain) {
  SiteRun run;
  run.add_process(trainer_record());
  const auto frame = run.add_frame("collate(Batch const&)", "/home/me/src/loader.cpp", 42);
  run.add_site(trainer_record().key, {frame}, rising(kSiteMiB));
  const tracker::RunSites half = [&] {
    SiteRun other = run;
    other.unseen = rising(kSiteMiB);
    return built(other, 100);
  }();
  const tracker::RunSites all = built(run, 100);
  ProfileReport report = report_of(half);

  EXPECT_EQ(report.coverage.growth_explained_share, std::nullopt);  // nobody has attached
  EXPECT_THAT(profile_text(report, {}), Not(HasSubstr("of its growth")));
  report.coverage.growth_explained_share = explained_growth(report);

  EXPECT_NEAR(*report.coverage.growth_explained_share, 0.5, 0.05);
  EXPECT_NEAR(*explained_growth(report_of(all)), 1.0, 0.05);
  EXPECT_THAT(profile_text(report, {}), HasSubstr("RSS explained 33.2 %, 50.0 % of its growth"));
}

TEST(ProfileCoverage, ExplainsNoGrowthWhereThereIsNone) {
  SiteRun run;
  run.add_process(trainer_record());
  const auto frame = run.add_frame("collate(Batch const&)", "/home/me/src/loader.cpp", 42);
  run.add_site(trainer_record().key, {frame}, constant(20 * kSiteMiB));
  const tracker::RunSites sites = built(run, 60);

  EXPECT_EQ(explained_growth(report_of(sites)), std::nullopt);
}

TEST(ProfileJson, LooksAsInTheGoldenFile) {
  const tracker::RunSites run = built(leaking_trainer(), 300, even_ages());

  const auto json = nlohmann::json::parse(profile_json(report_of(run)));

  EXPECT_EQ(difference_from_golden("profile/leak.json", json.dump(1) + '\n'), "");
}

TEST(ProfileJson, HasWhatTheSchemaPromises) {
  const tracker::RunSites run = built(leaking_trainer(), 300);

  const auto json = nlohmann::json::parse(profile_json(report_of(run)));

  EXPECT_EQ(json["schema"], 1);
  const auto& site = json["sites"][0];
  EXPECT_EQ(site["rank"], 1);
  EXPECT_EQ(site["verdict"], "leak");
  EXPECT_NEAR(site["growth_bytes_per_step"].get<double>(), kSiteMiB / 10.0, 5'000.0);
  EXPECT_EQ(site["frames"][0]["function"], "operator new(unsigned long)");
  EXPECT_EQ(site["frames"][2]["function"], "collate(Batch const&)");
  EXPECT_EQ(site["frames"][2]["line"], 42);
  EXPECT_EQ(json["sites"][1]["verdict"], "stable");
}

// Two ways from one line of the user's to the allocation, as torch has them.
SiteRun two_stacks_of_one_line() {
  SiteRun run;
  run.with_steps = true;
  run.add_process(trainer_record());
  const auto alloc =
      run.add_frame("c10::alloc_cpu(unsigned long)+0x8e", "", {}, "/usr/lib/libc10.so");
  const auto full =
      run.add_frame("at::_ops::full::call()+0x10", "", {}, "/usr/lib/libtorch_cpu.so");
  const auto clone = run.add_frame("at::_ops::clone::call()+0x20", "", {}, "/opt/libtorch_cpu.so");
  const auto inlined =
      run.add_frame("at::Tensor::clone() const", "/opt/torch/include/ATen/core/TensorBody.h", 3);
  const auto collate = run.add_frame("collate(Batch const&)", "/home/me/src/loader.cpp", 42);
  const auto main = run.add_frame("main", "/home/me/src/train.cpp", 7);
  run.add_site(trainer_record().key, {alloc, full, collate, main}, rising(4 * kSiteMiB));
  run.add_site(trainer_record().key, {alloc, clone, inlined, collate, main}, rising(3 * kSiteMiB));
  return run;
}

TEST(ProfileText, LeadsWithTheLineAndTheSumOfItsStacks) {
  const tracker::RunSites run = built(two_stacks_of_one_line(), 300);

  const std::string text = profile_text(make_report(run, short_warmup(), 10), {});

  EXPECT_THAT(text, HasSubstr("LEAK: collate(Batch const&) loader.cpp:42 keeps growing by +420 "
                              "MiB/min (+717 KiB/step) through\n2 call stacks, "));
  EXPECT_THAT(text, HasSubstr("\n    line     collate(Batch const&) loader.cpp:42\n"
                              "             through 2 call stacks\n"));
  EXPECT_THAT(text, HasSubstr("\n    stack 1  +410 KiB/step, live 1.17 GiB in "));
  EXPECT_THAT(text, HasSubstr("\n    stack 2  +307 KiB/step, live 897 MiB in "));
  EXPECT_THAT(text, HasSubstr("          -> collate(Batch const&) loader.cpp:42\n"
                              "             (then as above)\n"));
  EXPECT_THAT(text, Not(HasSubstr("more call stack")));
}

TEST(ProfileJson, HasLinesWithTheRanksOfTheirSites) {
  const tracker::RunSites run = built(two_stacks_of_one_line(), 300);

  const auto json =
      nlohmann::json::parse(profile_json(make_report(run, short_warmup(), /*top=*/1)));

  ASSERT_EQ(json["lines"].size(), 1U);
  const auto& line = json["lines"][0];
  EXPECT_EQ(line["file"], "/home/me/src/loader.cpp");
  EXPECT_EQ(line["line"], 42);
  EXPECT_EQ(line["function"], "collate(Batch const&)");
  EXPECT_EQ(line["sites"], nlohmann::json({1, 2}));
  EXPECT_NEAR(line["growth_bytes_per_step"].get<double>(), 0.7 * kSiteMiB, 0.01 * kSiteMiB);
  ASSERT_EQ(json["sites"].size(), 2U);  // all of the line, though --top is 1
  EXPECT_EQ(json["sites"][1]["rank"], 2);
}

TEST(ProfileText, ShowsLinesInTheLiveList) {
  const tracker::RunSites run = built(two_stacks_of_one_line(), 300);

  const std::string list = profile_list(make_report(run, short_warmup(), 10), 299.0, 100, 50);

  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 2);
  EXPECT_THAT(list, HasSubstr("\n 1  leak      +420 MiB/min  2.04 GiB  collate(Batch const&) "));
}

// A process whose blocks are freed while its memory stays.
SiteRun fragmented() {
  SiteRun run;
  run.add_process(trainer_record());
  run.add_site(trainer_record().key, {run.add_frame("decode", "/home/me/decode.cpp", 9)},
               [](double t_s) { return t_s >= 10.0 && t_s < 60.0 ? 250 * kSiteMiB : kSiteMiB; });
  return run;
}

// Accounts of the allocator's memory come until `accounts_until_s`.
tracker::RunSites built_fragmented(double accounts_until_s = 120.0) {
  tracker::SiteTrackBuilder builder;
  (void)builder.begin({});
  for (Tick& tick : fragmented().ticks(120)) {
    const std::uint64_t live = tick.allocations.traces.at(0).live_bytes;
    const std::uint64_t slack = (tick.t_s < 60.0 ? 2 : 251) * kSiteMiB;
    tick.processes.at(0).rss_anon_bytes = live + slack + 20 * kSiteMiB;
    if (tick.t_s <= accounts_until_s) {
      tick.allocations.accounts = {
          {trainer_record().key, tick.t_s, live, slack, 20 * kSiteMiB, /*tracer_bytes=*/0}};
    }
    (void)builder.add(tick);
  }
  return builder.sites();
}

TEST(ProfileText, NamesTheAllocatorThatKeepsWhatWasFreed) {
  const tracker::RunSites run = built_fragmented();

  const std::string text = profile_text(make_report(run, {}, 10), {});

  EXPECT_THAT(text,
              HasSubstr("NO LINE GROWS, but the allocator keeps 251 MiB that was freed, 92 %"));
  EXPECT_THAT(text, HasSubstr("allocator slack (freed and kept, or lost)        +249 MiB    251 "
                              "MiB\n"));
  EXPECT_THAT(text, HasSubstr("malloc_trim(0)"));
  EXPECT_THAT(text, HasSubstr("MALLOC_TRIM_THRESHOLD_=131072"));
  EXPECT_THAT(text, HasSubstr("jemalloc"));
}

TEST(ProfileJson, TellsTheSlackOfTheAllocator) {
  const tracker::RunSites run = built_fragmented();

  const auto json = nlohmann::json::parse(profile_json(make_report(run, {}, 10)));

  const auto& process = json["target"]["processes"][0];
  EXPECT_EQ(process["now"]["slack_bytes"], 251 * kSiteMiB);
  EXPECT_EQ(process["growth"]["slack_bytes"], 249 * kSiteMiB);
  EXPECT_EQ(process["now"]["unhooked_bytes"], 20 * kSiteMiB);
}

TEST(ProfileText, SaysHowOldTheAccountOfTheAllocatorIs) {
  const tracker::RunSites late = built_fragmented(115.0);
  const tracker::RunSites fresh = built_fragmented();

  const std::string text = profile_text(make_report(late, {}, 10), {});
  const auto json = nlohmann::json::parse(profile_json(make_report(late, {}, 10)));

  EXPECT_THAT(text, HasSubstr("Slack and not hooked are 4 s older than the rest"));
  EXPECT_EQ(json["target"]["processes"][0]["now"]["account_age_s"], 4.0);
  EXPECT_THAT(profile_text(make_report(fresh, {}, 10), {}), Not(HasSubstr("older than the rest")));
}

TEST(ProfileText, DoesNotBlameTheAllocatorForALittle) {
  const tracker::RunSites run = built(leaking_trainer(), 300);

  EXPECT_THAT(profile_text(report_of(run), {}), Not(HasSubstr("remedy")));
}

TEST(ProfileText, FitsANarrowTerminal) {
  const tracker::RunSites run = built(two_stacks_of_one_line(), 300);
  ProfileStyle style;
  style.columns = 72;

  const std::string text = profile_text(make_report(run, short_warmup(), 10), style);

  std::string_view rest = text;
  while (const auto line = next_line(rest)) {
    EXPECT_LE(line->size(), 80U) << *line;
  }
}

TEST(ProfileText, EscapesHostileNames) {
  SiteRun run;
  ProcessRecord process = trainer_record();
  process.comm = "evil\x1b[2J";
  run.add_process(process);
  run.add_site(process.key, {run.add_frame("f\x1b]0;x\x07\n", "a\x1b.cpp", 3, "/m\x1b/x")},
               rising(kSiteMiB));
  const tracker::RunSites sites = built(run, 100);
  ProfileReport report = make_report(sites, {}, 10);
  report.coverage.problems = {"bad\x1b"};
  report.shm = {30 * kSiteMiB, 1, {{"seg\x1b", kSiteMiB, kSiteMiB, {}, {}}}};

  const std::string text = profile_text(report, {Glyphs::kUtf8, false});
  const std::string line = profile_line(report, 1.0) + profile_list(report, 1.0, 100, 50);

  EXPECT_THAT(text + line, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("f\\x1b]0;x"));
  EXPECT_TRUE(nlohmann::json::accept(profile_json(report)));
}

TEST(ProfileText, SaysWhenARunWasTooShort) {
  const tracker::RunSites run = built(leaking_trainer(), 3);

  const std::string text = profile_text(make_report(run, {}, 10), {});

  EXPECT_THAT(text, HasSubstr("TOO SHORT TO TELL what grows: it was over after 2.0 s"));
  EXPECT_THAT(text, Not(HasSubstr("MiB/min")));
  EXPECT_THAT(text, HasSubstr("collate(Batch const&) loader.cpp:42"));  // among the largest
  EXPECT_THAT(profile_line(make_report(run, {}, 10), 2.0), Not(HasSubstr("growing")));
}

TEST(ProfileText, GivesNoAllClearForARunThatWasHardlySeen) {
  SiteRun run;
  run.add_process(trainer_record());
  run.add_site(trainer_record().key, {run.add_frame("model")}, constant(700 * kSiteMiB));

  EXPECT_THAT(profile_text(make_report(built(run, 5), {}, 10), {}), HasSubstr("TOO SHORT TO TELL"));
  EXPECT_THAT(profile_text(make_report(built(run, 6), {}, 10), {}), HasSubstr("NOTHING GROWS"));
}

TEST(ProfileText, SaysWhenNothingGrows) {
  SiteRun run;
  run.add_process(trainer_record());
  run.add_site(trainer_record().key, {run.add_frame("model")}, constant(700 * kSiteMiB));
  const tracker::RunSites sites = built(run, 300);

  const std::string text = profile_text(make_report(sites, {}, 10), {});

  EXPECT_THAT(text, HasSubstr("NOTHING GROWS"));
  EXPECT_THAT(text, HasSubstr("holds    stable"));
}

TEST(ProfileText, SaysWhenOnlySharedMemoryGrows) {
  SiteRun run;
  run.add_process(trainer_record());
  run.add_site(trainer_record().key, {run.add_frame("model")}, constant(700 * kSiteMiB));
  const tracker::RunSites sites = built(run, 300);
  ProfileReport report = make_report(sites, {}, 10);
  report.shm = {30 * kSiteMiB, 1, {{"torch_1", 30 * kSiteMiB, 30 * kSiteMiB, false, {}}}};

  const std::string text = profile_text(report, {});

  EXPECT_THAT(text, HasSubstr("/dev/shm GROWS by 30.0 MiB, and no call stack does"));
  EXPECT_THAT(text, HasSubstr("+30.0 MiB torch_1, held by no process"));
}

TEST(ProfileText, NamesSegmentsByWhatTheirNamesBeginWith) {
  SiteRun run;
  run.add_process(trainer_record());
  run.add_site(trainer_record().key, {run.add_frame("model")}, constant(700 * kSiteMiB));
  const tracker::RunSites sites = built(run, 300);
  ProfileReport report = make_report(sites, {}, 10);
  report.shm = {30 * kSiteMiB, 300, {}};
  for (const char* path : {"torch_7_1", "torch_7_10", "torch_7_100"}) {
    report.shm.largest.push_back({path, kSiteMiB, kSiteMiB, false, {}});
  }

  EXPECT_THAT(profile_text(report, {}), HasSubstr("in 300 segments named torch_7_*\n"));
}

TEST(ProfileText, SaysWhenThereIsNoData) {
  const tracker::RunSites nothing;

  const std::string text = profile_text(make_report(nothing, {}, 10), {});

  EXPECT_THAT(text, HasSubstr("NO DATA"));
}

TEST(ProfileText, ShowsTheFastestInALine) {
  const tracker::RunSites run = built(leaking_trainer(), 300);

  EXPECT_EQ(profile_line(report_of(run), 299.0),
            "00:04:59  step 2990  1 traced  sites 999 MiB  +60.0 MiB/min leak  "
            "collate(Batch const&) loader.cpp:42\n");
}

TEST(AgeText, TellsALeakFromWarmUpAndFromYouth) {
  std::vector<SiteAges::Interval> ages(8);
  for (auto& interval : ages) {
    interval.bytes = 100;
  }
  const std::string even = age_text(ages, Glyphs::kAscii);
  ages.assign(8, {});
  ages[0].bytes = 100;
  const std::string early = age_text(ages, Glyphs::kAscii);
  ages.assign(8, {});
  ages[7].bytes = 100;
  const std::string late = age_text(ages, Glyphs::kAscii);

  EXPECT_THAT(even, HasSubstr("########  in every part of the run"));
  EXPECT_THAT(early, HasSubstr("#_______  nearly all at the beginning"));
  EXPECT_THAT(late, HasSubstr("_______#  nearly all of it young"));
  EXPECT_EQ(age_text({}, Glyphs::kAscii), "");
}

TEST(ShownStack, LeavesOutTheTracerAndTheAllocator) {
  const tracker::RunSites run = built(leaking_trainer(), 10);

  const tracker::ShownStack stack = tracker::shown_stack(run, run.sites.at(0).record.frames);

  ASSERT_EQ(stack.frames.size(), 2U);
  EXPECT_EQ(stack.frames[0].frame->function, "collate(Batch const&)");
  EXPECT_EQ(stack.own_line, 0U);
  EXPECT_EQ(tracker::frames_of(run, run.sites[0].record.frames).size(), 5U);
}

TEST(ShownStack, DoesNotTakeTheCLibraryForTheUsersOwn) {
  SiteRun run;
  run.add_process(trainer_record());
  const auto python = run.add_frame("PyByteArray_Resize+0x1e4", "", {}, "/usr/bin/python3.11");
  const auto start =
      run.add_frame("__libc_start_main_impl", "../csu/libc-start.c", 360, "/lib/libc.so.6");
  run.add_site(trainer_record().key, {python, start}, constant(1));
  const tracker::RunSites sites = built(run, 2);

  const tracker::ShownStack stack = tracker::shown_stack(sites, sites.sites.at(0).record.frames);

  EXPECT_EQ(stack.own_line, std::nullopt);
  EXPECT_EQ(tracker::headline(stack, "", 80), "PyByteArray_Resize+0x1e4 [python3.11]");
}

TEST(ShownStack, TakesAFrameOfTheUsersModuleWhereThereIsNoSource) {
  SiteRun run;
  run.add_process(trainer_record());
  const auto torch =
      run.add_frame("c10::alloc_cpu(unsigned long)+0x8e", "", {},
                    "/home/me/venv/lib/python3.11/site-packages/torch/lib/libc10.so");
  const auto own = run.add_frame("decode_image+0x1c", "", {}, "/home/me/libdecode.so");
  const auto again = run.add_frame("decode_image+0x2c", "", {}, "/home/me/libdecode.so");
  run.add_site(trainer_record().key, {torch, own}, constant(1));
  run.add_site(trainer_record().key, {torch, again}, constant(1));
  run.add_site(trainer_record().key, {torch}, constant(1));
  const tracker::RunSites sites = built(run, 2);

  const tracker::ShownStack stack = tracker::shown_stack(sites, sites.sites.at(0).record.frames);

  EXPECT_EQ(stack.own_line, 1U);
  EXPECT_THAT(tracker::own_lines(sites, sites.sites[0].record.frames),
              ElementsAre("/home/me/libdecode.so decode_image"));
  EXPECT_THAT(tracker::own_lines(sites, sites.sites[1].record.frames),
              ElementsAre("/home/me/libdecode.so decode_image"));
  EXPECT_THAT(tracker::own_lines(sites, sites.sites[2].record.frames), IsEmpty());
}

TEST(ShownStack, DoesNotTakeALibraryWithSourcesForTheUsersOwn) {
  SiteRun run;
  run.add_process(trainer_record());
  const auto torch =
      run.add_frame("at::detail::empty_cpu()", "/build/aten/src/ATen/EmptyTensor.cpp", 30,
                    "/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13");
  const auto python = run.add_frame("_PyEval_EvalFrameDefault", "/build/Python/ceval.c", 12,
                                    "/home/me/miniconda3/bin/python3.11");
  run.add_site(trainer_record().key, {torch, python}, constant(1));
  const tracker::RunSites sites = built(run, 2);

  EXPECT_EQ(tracker::shown_stack(sites, sites.sites.at(0).record.frames).own_line, std::nullopt);
}

TEST(ShownStack, TakesWhatPythonCallsWhereThereIsNothingOfTheUsers) {
  SiteRun run;
  run.add_process(trainer_record());
  const auto alloc =
      run.add_frame("c10::alloc_cpu(unsigned long)+0x8e", "", {}, "/usr/lib/libc10.so");
  const auto zeros =
      run.add_frame("at::_ops::zeros::call()+0x10", "", {}, "/usr/lib/libtorch_cpu.so");
  const auto binding =
      run.add_frame("libtorch_python.so+0x61e2dd", "", {}, "/usr/lib/libtorch_python.so");
  const auto python = run.add_frame("_PyEval_EvalFrameDefault+0x7", "", {}, "/usr/bin/python3.11");
  const auto other = run.add_frame("PyObject_Call+0x3", "", {}, "/usr/bin/python3.11");
  run.add_site(trainer_record().key, {alloc, zeros, binding, python}, rising(kSiteMiB));
  run.add_site(trainer_record().key, {alloc, zeros, binding, other, python}, rising(kSiteMiB));
  const tracker::RunSites sites = built(run, 300);

  const tracker::ShownStack stack = tracker::shown_stack(sites, sites.sites.at(0).record.frames);
  const ProfileReport report = make_report(sites, {}, 10);

  EXPECT_EQ(stack.own_line, std::nullopt);
  EXPECT_EQ(stack.stand_in, 1U);
  ASSERT_EQ(report.ranking.lines.size(), 1U);
  EXPECT_THAT(profile_text(report, {}), HasSubstr("GROWING: at::_ops::zeros::call()+0x10 "));
  EXPECT_THAT(profile_text(report, {}), HasSubstr("no line of Python is known"));
}

TEST(ShownStack, KeepsTheAllocatorWhenThereIsNothingElse) {
  SiteRun run;
  run.add_process(trainer_record());
  run.add_site(trainer_record().key, {run.add_frame("malloc", "", {}, "/lib/libc.so.6")},
               constant(1));
  const tracker::RunSites sites = built(run, 2);

  EXPECT_EQ(tracker::shown_stack(sites, sites.sites.at(0).record.frames).frames.size(), 1U);
}

TEST(ExportSites, GivesLiveBytesOrTheGrowthBetweenTwoTimes) {
  const tracker::RunSites run = built(leaking_trainer(), 300);

  const Profile live = make_profile(run, {}, {});
  const Profile growth = make_profile(run, 100.0, 200.0);

  EXPECT_EQ(live.sites.at(0).live_bytes, 299.0 * kSiteMiB);
  EXPECT_NEAR(growth.sites.at(0).growth_bytes, 100.0 * kSiteMiB, 2.0 * kSiteMiB);
  EXPECT_NEAR(growth.sites[0].live_bytes, 200.0 * kSiteMiB, 2.0 * kSiteMiB);
  EXPECT_EQ(growth.sites.at(1).growth_bytes, 0.0);
  EXPECT_EQ(live.process, "trainer 101");
}

}  // namespace
}  // namespace tidemark::report
