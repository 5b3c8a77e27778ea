// SPDX-License-Identifier: Apache-2.0
// Reports, exports and the live list of a run whose stacks have frames of Python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/export_sites.h"
#include "report/profile_report.h"
#include "report/profile_text.h"
#include "tests/support/golden.h"
#include "tests/support/site_run.h"

namespace tidemark::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tests::constant;
using tests::difference_from_golden;
using tests::kSiteMiB;
using tests::rising;
using tests::SiteRun;
using tests::trainer_record;

const std::string kPackages = "/home/me/venv/lib/python3.11/site-packages/";

// A collator that keeps batches, by two lines, below the loops of torch and transformers.
tracker::RunSites keeping_batches() {
  SiteRun run;
  run.add_process(trainer_record());
  run.with_steps = true;
  const auto alloc =
      run.add_frame("c10::alloc_cpu(unsigned long)+0x8e", "", {}, "/usr/lib/libc10.so");
  std::vector<std::uint32_t> inner{alloc};
  for (int i = 0; i < 6; ++i) {
    inner.push_back(run.add_frame("at::native::work()+0x1", "", {}, "/usr/lib/libtorch_cpu.so"));
  }
  inner.push_back(run.add_frame("at::_ops::stack::call(c10::ArrayRef<at::Tensor>, long)+0x1c", "",
                                {}, "/usr/lib/libtorch_cpu.so"));
  const auto functional = run.add_python("stack", kPackages + "torch/functional.py", 512);
  std::vector<std::uint32_t> outer;
  for (const char* function :
       {"_MapDatasetFetcher.fetch", "_SingleProcessDataLoaderIter._next_data",
        "_BaseDataLoaderIter.__next__", "DataLoader.__iter__"}) {
    outer.push_back(run.add_python(function, kPackages + "torch/utils/data/dataloader.py", 54));
  }
  outer.push_back(run.add_python("Trainer.train", kPackages + "transformers/trainer.py", 1500));
  outer.push_back(run.add_python("main", "/home/me/job/train.py", 80));
  for (int i = 0; i < 3; ++i) {
    outer.push_back(run.add_python("_call", "<frozen importlib._bootstrap>", 241));
  }
  outer.push_back(run.add_python("<module>", "/home/me/job/run.py", 3));
  const auto add = [&](std::uint32_t line, std::uint64_t mib_per_s) {
    std::vector<std::uint32_t> frames = inner;
    frames.push_back(functional);
    frames.push_back(run.add_python("Collator.__call__", "/home/me/job/train.py", line));
    frames.insert(frames.end(), outer.begin(), outer.end());
    run.add_site(trainer_record().key, frames, rising(mib_per_s * kSiteMiB));
  };
  add(42, 3);
  add(43, 2);
  run.add_site(trainer_record().key, {alloc, run.add_python("build", "/home/me/job/model.py", 12)},
               constant(700 * kSiteMiB));
  tracker::SiteTrackBuilder builder;
  for (const Tick& tick : run.ticks(300)) {
    (void)builder.add(tick);
  }
  return builder.sites();
}

ProfileReport report_of(const tracker::RunSites& run) {
  tracker::JudgeOptions options;
  options.warmup.steps = 600.0;
  return make_report(run, options, 10);
}

TEST(ProfileOfPython, LooksAsInTheGoldenFile) {
  const tracker::RunSites run = keeping_batches();

  EXPECT_EQ(difference_from_golden("profile/python.txt",
                                   profile_text(report_of(run), {Glyphs::kAscii, false})),
            "");
}

TEST(ProfileOfPython, CanLeadWithFunctionsOrNativeFunctions) {
  const tracker::RunSites run = keeping_batches();
  ProfileReport report = report_of(run);

  report.by = tracker::Grouping::kFunction;
  const std::string functions = profile_text(report, {});
  report.by = tracker::Grouping::kNative;
  const std::string natives = profile_text(report, {});

  EXPECT_THAT(functions, HasSubstr("LEAK: Collator.__call__ in train.py (2 lines) keeps growing by "
                                   "+300 MiB/min"));
  EXPECT_THAT(functions, Not(HasSubstr("\nfunction ")));
  EXPECT_THAT(natives, HasSubstr("LEAK: at::_ops::stack::call("));
  EXPECT_THAT(natives, HasSubstr(" 1  leak     +300 MiB/min"));
  EXPECT_THAT(natives, Not(HasSubstr("\nnative ")));
}

TEST(ProfileOfPython, HasLinesFunctionsAndNativesInJson) {
  const tracker::RunSites run = keeping_batches();

  const auto json = nlohmann::json::parse(profile_json(report_of(run)));

  const auto& line = json["lines"][0];
  EXPECT_EQ(line["file"], "/home/me/job/train.py");
  EXPECT_EQ(line["line"], 42);
  EXPECT_EQ(line["function"], "Collator.__call__");
  EXPECT_EQ(line["language"], "python");
  EXPECT_EQ(line["own"], true);
  EXPECT_EQ(line["call"], "torch.functional.stack");
  const auto& function = json["functions"][0];
  EXPECT_EQ(function["function"], "Collator.__call__");
  EXPECT_TRUE(function["line"].is_null());
  EXPECT_EQ(function["sites"], nlohmann::json({1, 2}));
  const auto& native = json["natives"][0];
  EXPECT_EQ(native["language"], "native");
  EXPECT_EQ(native["module"], "/usr/lib/libtorch_cpu.so");
  EXPECT_EQ(native["own"], false);
  EXPECT_TRUE(native["call"].is_null());
  EXPECT_EQ(native["sites"], nlohmann::json({1, 2}));
  EXPECT_EQ(json["sites"][0]["frames"][8]["kind"], "python");
}

TEST(ProfileOfPython, SaysWhereALineHasSeveralCalls) {
  SiteRun run;
  run.add_process(trainer_record());
  const auto own = run.add_python("step", "/home/me/train.py", 42);
  for (const char* function : {"stack", "norm"}) {
    run.add_site(trainer_record().key,
                 {run.add_python(function, kPackages + "torch/functional.py", 5), own},
                 rising(kSiteMiB));
  }
  tracker::SiteTrackBuilder builder;
  for (const Tick& tick : run.ticks(300)) {
    (void)builder.add(tick);
  }

  EXPECT_THAT(profile_text(report_of(builder.sites()), {}),
              HasSubstr("train.py:42 in step calling torch.functional.stack and more "));
}

TEST(ProfileOfPython, SaysWhenNoLineIsTheUsers) {
  SiteRun run;
  run.add_process(trainer_record());
  run.add_site(trainer_record().key,
               {run.add_python("stack", kPackages + "torch/functional.py", 5)}, rising(kSiteMiB));
  tracker::SiteTrackBuilder builder;
  for (const Tick& tick : run.ticks(300)) {
    (void)builder.add(tick);
  }
  const ProfileReport report = report_of(builder.sites());

  EXPECT_THAT(profile_text(report, {}), HasSubstr("torch/functional.py:5 in stack "));
  EXPECT_THAT(profile_text(report, {}),
              HasSubstr("(none of it is your code: -> is the innermost line of Python)"));
  EXPECT_EQ(nlohmann::json::parse(profile_json(report))["lines"][0]["own"], false);
}

// Kept by a collator in a worker of a DataLoader, that is; the thread that sends them knows no
// more.
TEST(ProfileOfPython, SaysHowToSeeWhoKeepsTensorsThatWereSent) {
  SiteRun run;
  run.add_process(trainer_record());
  run.add_site(
      trainer_record().key,
      {run.add_python("reduce_storage", kPackages + "torch/multiprocessing/reductions.py", 366),
       run.add_python("Queue._feed", "/usr/lib/python3.11/multiprocessing/queues.py", 244)},
      rising(kSiteMiB));
  tracker::SiteTrackBuilder builder;
  for (const Tick& tick : run.ticks(300)) {
    (void)builder.add(tick);
  }

  const std::string text = profile_text(report_of(builder.sites()), {});

  EXPECT_THAT(text, HasSubstr("(torch moves the tensors that a process sends into shared memory"));
  EXPECT_THAT(text, HasSubstr("shows with num_workers=0)"));
  EXPECT_THAT(text, Not(HasSubstr("none of it is your code")));
}

TEST(ProfileOfPython, ShowsTheLineWhileTheJobRuns) {
  const tracker::RunSites run = keeping_batches();

  EXPECT_THAT(profile_list(report_of(run), 299.0, 120, 50),
              HasSubstr("train.py:42 in Collator.__call__ calling torch.functional.stack\n"));
  EXPECT_THAT(profile_line(report_of(run), 299.0), HasSubstr("train.py:42 in Collator.__call__"));
}

TEST(ProfileOfPython, IsExportedWithFilesAndLines) {
  const Profile profile = make_profile(keeping_batches(), {}, {});

  std::string folded;
  ASSERT_TRUE(export_folded(profile, ProfileMeasure::kLiveBytes, [&](const std::string& line) {
    folded += line;
    return ok();
  }));
  const auto speedscope =
      nlohmann::json::parse(export_speedscope(profile, {ProfileMeasure::kLiveBytes}));
  const std::string pprof = export_pprof(profile);

  EXPECT_THAT(folded,
              HasSubstr(";main (train.py:80);Trainer.train (transformers/trainer.py:1500);"));
  EXPECT_THAT(folded, HasSubstr(";Collator.__call__ (train.py:42);stack "
                                "(torch/functional.py:512);at::_ops::stack::call("));
  const nlohmann::json own{
      {"name", "Collator.__call__"}, {"file", "/home/me/job/train.py"}, {"line", 42}};
  EXPECT_THAT(speedscope["shared"]["frames"], testing::Contains(own));
  EXPECT_THAT(pprof, HasSubstr("Collator.__call__"));
  EXPECT_THAT(pprof, HasSubstr("/home/me/job/train.py"));
  EXPECT_THAT(pprof, HasSubstr("\x10\x2a"));  // line 42 of it
}

// Two files of one name stay two frames.
TEST(ProfileOfPython, IsFoldedWithoutMixingFiles) {
  Profile profile;
  for (const char* file : {"/me/data/utils.py", "/me/model/utils.py"}) {
    SourceFrame frame;
    frame.kind = FrameKind::kPython;
    frame.function = "load;all";
    frame.file = file;
    frame.line = 3;
    ProfileSite site;
    site.frames = {static_cast<std::uint32_t>(profile.frames.size())};
    site.live_bytes = 5.0;
    profile.frames.push_back(frame);
    profile.sites.push_back(site);
  }
  std::vector<std::string> lines;
  ASSERT_TRUE(export_folded(profile, ProfileMeasure::kLiveBytes, [&](const std::string& line) {
    lines.push_back(line);
    return ok();
  }));

  EXPECT_THAT(lines,
              ElementsAre("load:all (data/utils.py:3) 5\n", "load:all (model/utils.py:3) 5\n"));
}

TEST(StackRows, FoldLongRunsOfALibrary) {
  const std::string text = profile_text(report_of(keeping_batches()), {});

  EXPECT_THAT(text, HasSubstr("... 6 frames of libtorch_cpu.so\n"));
  EXPECT_THAT(text, HasSubstr("_MapDatasetFetcher.fetch torch/utils/data/dataloader.py:54\n"
                              "             ... 3 frames of torch\n"
                              "             Trainer.train transformers/trainer.py:1500\n"
                              "             main train.py:80\n"
                              "             ... 3 frames of importlib\n"
                              "             <module> run.py:3\n"));
}

}  // namespace
}  // namespace tidemark::report
