// SPDX-License-Identifier: Apache-2.0
// What `tidemark owners` prints.
#include "report/owners_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/owner_run.h"
#include "tests/support/site_run.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using tests::entries_at;
using tests::kOwnerMiB;
using tests::owner_record;
using tests::OwnerRun;
using tests::trainer_record;
using tests::worker_record;

// A report and what it refers to.
struct MadeReport {
  std::unique_ptr<tracker::OwnerTrackBuilder> owners =
      std::make_unique<tracker::OwnerTrackBuilder>();
  std::unique_ptr<tracker::SiteTrackBuilder> sites = std::make_unique<tracker::SiteTrackBuilder>();
  OwnersReport report;

  std::string text(std::size_t columns = 100) const {
    return owners_text(report, {.columns = columns});
  }
  nlohmann::json json() const { return nlohmann::json::parse(owners_json(report)); }
};

MadeReport made(const std::vector<Tick>& ticks) {
  MadeReport made;
  for (const Tick& tick : ticks) {
    EXPECT_TRUE(made.owners->add(tick));
    EXPECT_TRUE(made.sites->add(tick));
  }
  made.report = make_owners_report(made.owners->owners(), &made.sites->sites(), {});
  return made;
}

bool is_narrow(const std::string& text, std::size_t columns) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end - at > columns) {
      ADD_FAILURE() << text.substr(at, end - at);
      return false;
    }
    at = end + 1;
  }
  return true;
}

TEST(OwnersText, NamesTheOwnerWhatItHoldsAndWhereToCut) {
  const std::string text = made(tests::leaking_collator().ticks(3)).text();

  EXPECT_THAT(text,
              StartsWith("GROWING +1.00 MiB/step: 100 % of it is held by  __main__.collator.cache\n"
                         "  is       dict, 1,204 entries, +1.00 per step in 3 of 3 looks\n"));
  EXPECT_THAT(made(tests::leaking_collator().ticks(3)).text(140),
              StartsWith("GROWING +1.00 MiB/step: 100 % of it is held by  "
                         "__main__.collator.cache   dict, 1,204 entries, +1.00 per step in 3 of 3 "
                         "looks\n"));
  EXPECT_THAT(text, HasSubstr("\n  holds    +40 x torch.Tensor float32 [256, 1024] cpu     "));
  EXPECT_THAT(text, HasSubstr("  +40.0 MiB\n  path     module __main__ -> collator (VisionCollator)"
                              " -> .cache -> [*]\n  cut here drop or bound `cache`: 1.18 GiB go "
                              "free (nothing else reaches 100 % of it)\n  because  for a leak: it "
                              "gets 1.00 entries each step all the time; for a warm-up: a dict"));
  EXPECT_THAT(text, HasSubstr("  needs    3 more looks (--looks 6)"));
  EXPECT_THAT(text, HasSubstr("  not it   dataset 210 MiB constant; optimizer.state 8.00 MiB "
                              "constant\n"));
}

TEST(OwnersText, SaysHowFarTheFiguresGo) {
  OwnerRun run = tests::leaking_collator();
  run.unowned = [](std::size_t look) { return 5 * kOwnerMiB * look; };
  run.adjust = [](HeapFacts::OfProcess& of, std::size_t look) {
    of.look.copied_bytes = 1000 * look;
    of.look.interpreter.gc_enabled = false;
    of.look.interpreter.gc_thresholds = {700, 10, 10};
    of.look.is_partial = look == 1;
    of.look.detour = "no room\x1b[31m for a copy";
    of.look.unread_bytes = 4096;
    of.look.problem = "a thread did not stop";
  };

  const std::string text = made(run.ticks(3)).text();

  EXPECT_THAT(text, HasSubstr("GROWING +1.00 MiB/step: 80 % of it is held by"));
  EXPECT_THAT(text,
              HasSubstr("growth   trainer, pid 101 (train.py): footprint +50.0 MiB to 150 MiB, "
                        "objects +40.0 MiB in 40 s,\n         40 steps; owners explain 80 %.\n"
                        "         Not explained: 10.0 MiB. "));
  EXPECT_THAT(text, HasSubstr("looks    trainer, pid 101 (train.py): 3 looks of a frozen copy; "
                              "100,000 objects with"));
  EXPECT_THAT(text, HasSubstr("1.2 ms at most"));
  EXPECT_THAT(text, HasSubstr("and the process had to copy 1.95 KiB"));
  EXPECT_THAT(text, HasSubstr("runs     Python 3.11.2; garbage collection is OFF, thresholds 700 "
                              "10 10."));
  EXPECT_THAT(text, HasSubstr("partial  pid 101: the budget was used up at 1 of 3 looks"));
  EXPECT_THAT(text, HasSubstr("detour   pid 101: no room\\x1b[31m for a copy\n"));
  EXPECT_THAT(text, HasSubstr("unread   pid 101: 4.00 KiB could not be read\n"));
  EXPECT_THAT(text, HasSubstr("problem  pid 101: a thread did not stop\n"));
}

// Whatever leads to it: what to change is the variable.
TEST(OwnersText, NamesVariablesByThemselves) {
  const auto cut_of = [](const std::string& path, std::vector<PathStep> steps) {
    OwnerRun run;
    run.add_process(trainer_record());
    OwnerRecord owner = owner_record(path, "list");
    owner.steps = std::move(steps);
    run.add(owner, entries_at([](std::size_t look) { return 10U * look; }));
    const std::string text = made(run.ticks(3)).text();
    return text.substr(text.find("  cut here "),
                       text.find('\n', text.find("  cut here ")) - text.find("  cut here "));
  };

  EXPECT_THAT(cut_of("step() closure: seen", {{"module __main__", ""}, {"closure seen", "list"}}),
              StartsWith("  cut here drop or bound `seen`: "));
  EXPECT_THAT(cut_of("worker() locals: queue", {{"worker() locals: queue", "deque"}}),
              StartsWith("  cut here drop or bound `queue`: "));
  EXPECT_THAT(cut_of("__main__.Tok.encode (lru_cache)",
                     {{"module __main__", ""}, {".encode", "wrapper"}, {" (lru_cache)", "dict"}}),
              StartsWith("  cut here drop or bound `encode`: "));
}

// The bytes of a cache are those of the function that has it.
TEST(OwnersText, DoesNotSayThatItIsNotTheFunctionOfACache) {
  OwnerRun run;
  run.add_process(trainer_record());
  run.add(owner_record("__main__.load (lru_cache)"),
          entries_at([](std::size_t look) { return 10U * look; }));
  run.add(owner_record("__main__.load", "functools._lru_cache_wrapper", OwnerKind::kName),
          tests::constant_bytes(50 * kOwnerMiB));

  EXPECT_THAT(made(run.ticks(3)).text(), Not(HasSubstr("not it")));
}

// Nothing is known of what leads to tensors in a program without Python.
TEST(OwnersText, SendsFromTensorsOfNativeCodeToTheProfiler) {
  OwnerRun run;
  run.add_process(trainer_record());
  const std::string path = "torch tensors uint8 [524288] cpu";
  OwnerRecord owner = owner_record(path, "torch.Tensor", OwnerKind::kNative);
  owner.steps = {{path, "torch.Tensor"}};
  run.add(owner, [](std::size_t look) {
    OwnerSample sample;
    sample.grown_bytes = sample.grown_bytes_alone = 10 * kOwnerMiB * look;
    sample.retained_bytes = 10 * kOwnerMiB * (1 + look);
    return std::optional(sample);
  });
  run.adjust = [](HeapFacts::OfProcess& of, std::size_t) { of.look.interpreter = {}; };

  const std::string text = made(run.ticks(3)).text(200);

  EXPECT_THAT(text, HasSubstr("cut here find the native code that keeps `torch tensors uint8 "
                              "[524288] cpu`: 30.0 MiB go free; tidemark profile names the line "
                              "that allocates them\n"));
  EXPECT_THAT(text, Not(HasSubstr("path ")));
  EXPECT_THAT(text, Not(HasSubstr("no object of Python")));
}

TEST(OwnersText, LeavesOutARestThatIsSmall) {
  OwnerRun run = tests::leaking_collator();
  run.unowned = [](std::size_t look) { return kOwnerMiB * look; };

  const std::string text = made(run.ticks(3)).text();

  EXPECT_THAT(text, HasSubstr("owners explain 95"));
  EXPECT_THAT(text, Not(HasSubstr("Not explained")));
}

TEST(OwnersText, GivesTheSecondHolderWhereBytesAreShared) {
  OwnerRun run;
  run.add_process(trainer_record());
  run.add(owner_record("__main__.history", "list"), [](std::size_t look) {
    OwnerSample sample;
    sample.entries = look;
    sample.grown_bytes = 10 * kOwnerMiB * look;
    sample.grown_bytes_alone = 4 * kOwnerMiB * look;
    sample.shared_with = "__main__.trainer.log";
    return std::optional(sample);
  });

  const std::string text = made(run.ticks(3)).text(200);

  EXPECT_THAT(text, HasSubstr("cut here drop or bound `__main__.history`: 20.0 MiB have come since "
                              "the first look (nothing else reaches 40.0 % of it; the rest is "
                              "reached from __main__.trainer.log as well)"));
}

TEST(OwnersText, ShowsTheRangeOfARateThatIsNotEven) {
  OwnerRun run;
  run.add_process(trainer_record());
  run.add(owner_record("__main__.kept"),
          entries_at([](std::size_t look) { return look == 2 ? 50U : 10U * look; }));

  EXPECT_THAT(made(run.ticks(3)).text(),
              StartsWith("GROWING +1.25 MiB/step (+512 KiB/step to +2.00 MiB/step): "));
}

TEST(OwnersText, HasLibrariesApartFromTheJob) {
  OwnerRun run = tests::leaking_collator();
  OwnerRecord library = owner_record("torch.jit._state._script_functions");
  library.is_library = true;
  run.add(library, entries_at([](std::size_t look) { return 30 * look; }));

  MadeReport report = made(run.ticks(3));
  const std::string text = report.text();

  EXPECT_THAT(text, StartsWith("GROWING +1.00 MiB/step: 40 % of it is held by  __main__"));
  EXPECT_THAT(text, HasSubstr("in libraries\n  growing   60.0 MiB  +1.50 MiB/step  torch.jit"));
  report.report.with_all = true;
  EXPECT_THAT(report.text(),
              StartsWith("GROWING +1.50 MiB/step: 60 % of it is held by  torch.jit"));
}

TEST(OwnersText, SaysWhereThereIsNothingToSay) {
  OwnerRun run = tests::leaking_collator();

  EXPECT_THAT(made(run.ticks(1)).text(), StartsWith("ONE LOOK: "));
  EXPECT_THAT(made(run.ticks(1)).text(), HasSubstr("held, not growing"));
  run.adjust = [](HeapFacts::OfProcess& of, std::size_t) {
    of.owners.clear();
    of.look.footprint_bytes = 100 * kOwnerMiB;
  };
  EXPECT_THAT(made(run.ticks(3)).text(), StartsWith("NOTHING KEEPS GROWING: "));
  run.adjust = [](HeapFacts::OfProcess& of, std::size_t) { of.owners.clear(); };
  const MadeReport unexplained = made(run.ticks(3));
  EXPECT_THAT(unexplained.text(), StartsWith("NO OWNER GROWS, but the memory does"));
  EXPECT_TRUE(has_unexplained_growth(unexplained.report));
  run.adjust = [](HeapFacts::OfProcess& of, std::size_t) {
    of.look.objects = 0;
    of.look.problem = "not allowed";
  };
  const MadeReport none = made(run.ticks(3));
  EXPECT_THAT(none.text(), StartsWith("NO DATA: "));
  EXPECT_THAT(none.text(), HasSubstr("problem  pid 101: not allowed"));
  EXPECT_FALSE(has_looks(none.report));
}

TEST(OwnersText, DoesNotSayThatItIsNotWhatLeadsToTheOwner) {
  OwnerRun run = tests::leaking_collator();
  run.add(owner_record("__main__.collator", "VisionCollator", OwnerKind::kName),
          tests::constant_bytes(50 * kOwnerMiB));
  run.add(owner_record("__main__.collat", "list", OwnerKind::kName),
          tests::constant_bytes(20 * kOwnerMiB));

  EXPECT_THAT(made(run.ticks(3)).text(200),
              HasSubstr("  not it   dataset 210 MiB constant; collat 20.0 MiB constant; "
                        "optimizer.state 8.00 MiB constant\n"));
}

TEST(OwnersText, TellsACacheThatHasFilledFromALeak) {
  OwnerRun run;
  run.add_process(trainer_record());
  run.add(owner_record("__main__.cache"),
          entries_at([](std::size_t look) { return look == 0 ? 0U : 30U; }));

  const std::string text = made(run.ticks(3)).text();

  EXPECT_THAT(text, StartsWith("NOTHING KEEPS GROWING: "));
  EXPECT_THAT(text, HasSubstr("  warmup    30.0 MiB             -  __main__.cache   dict, 30"));
}

TEST(OwnersText, NamesProcessesWhereThereAreSeveral) {
  OwnerRun run = tests::leaking_collator();
  ProcessRecord worker = worker_record();
  worker.role = Role::kDataloaderWorker;
  worker.rank.reset();
  run.add_process(worker);

  EXPECT_THAT(made(run.ticks(3)).text(), HasSubstr("  in       trainer, pid 101 (train.py)\n"));
}

TEST(OwnersText, NamesTheLineThatAllocatesWhereItWasTraced) {
  tests::SiteRun traced;
  traced.add_process(trainer_record());
  traced.add_site(trainer_record().key, {traced.add_python("collate", "/home/me/train.py", 41)},
                  [](double t_s) { return static_cast<std::uint64_t>(t_s) * kOwnerMiB; });
  OwnerRun run = tests::leaking_collator();
  run.adjust = [](HeapFacts::OfProcess& of, std::size_t) {
    of.owners[0].sites = {{99, 1}, {1, 40 * kOwnerMiB}};
  };
  std::vector<Tick> ticks = run.ticks(3);
  ticks[0].allocations = traced.ticks(1).front().allocations;

  const MadeReport report = made(ticks);

  EXPECT_THAT(report.text(), HasSubstr("  made at  train.py:41 in collate  40.0 MiB\n"));
  const nlohmann::json frames = report.json()["owners"][0]["frames"];
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0]["function"], "collate");
  EXPECT_EQ(frames[0]["line"], 41);
}

TEST(OwnersText, FitsInNarrowTerminalsAndHasColourOnlyThere) {
  const MadeReport report = made(tests::leaking_collator().ticks(3));

  EXPECT_TRUE(is_narrow(report.text(60), 64));
  EXPECT_THAT(report.text(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(owners_text(report.report, {.colour = true}), StartsWith("\x1b[1mGROWING"));
}

TEST(OwnersText, EscapesNamesOfTheJob) {
  OwnerRun run;
  run.add_process(trainer_record());
  OwnerRecord owner = owner_record("__main__.\x1b[2J\n", "ev\xffil");
  owner.steps = {{"mod\x1bule", ""}, {".x\n", "Ty\x1bpe"}, {"[*]", ""}};
  run.add(owner, [](std::size_t look) {
    OwnerSample sample;
    sample.grown_bytes = kOwnerMiB * look;
    sample.shared_with = "\x1b";
    sample.holds = {{"\x1bstr", "\x1b", {1}, "\x1b", 1, 1}};
    return std::optional(sample);
  });
  MadeReport report = made(run.ticks(3));
  report.report.with_types = report.report.with_tensors = true;
  report.report.notes = {"pid 5: \x1b"};

  EXPECT_THAT(report.text(), Not(HasSubstr("\x1b")));
  EXPECT_TRUE(report.json().is_object());
}

TEST(OwnersText, HasTablesOfTypesAndTensors) {
  OwnerRun run = tests::leaking_collator();
  run.adjust = [](HeapFacts::OfProcess& of, std::size_t look) {
    of.types = {{"str", 1'000 + 10 * look, (1 + look) * kOwnerMiB}, {"dict", 5, 100}};
    of.tensors = {
        {"cpu", "float32", {256, 1024}, true, false, true, true, 2 + look, look * kOwnerMiB}};
  };
  MadeReport report = made(run.ticks(2));

  EXPECT_THAT(report.text(), Not(HasSubstr("types of")));
  report.report.with_types = report.report.with_tensors = true;

  EXPECT_THAT(report.text(), HasSubstr("types of trainer, pid 101 (train.py)\n"
                                       "     bytes     growth  count  growth  type\n"));
  EXPECT_THAT(report.text(), HasSubstr("  2.00 MiB  +1.00 MiB  1,010     +10  str\n"));
  EXPECT_THAT(report.text(), HasSubstr("cpu float32 [256, 1024], requires grad, view, pinned\n"));
}

TEST(OwnersJson, HasTheDocumentedFields) {
  MadeReport report = made(tests::leaking_collator().ticks(3));
  report.report.command = "python3 train.py";

  const nlohmann::json json = report.json();

  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["target"]["command"], "python3 train.py");
  EXPECT_EQ(json["target"]["processes"][0]["pid"], 101);
  ASSERT_EQ(json["looks"].size(), 3U);
  const nlohmann::json& look = json["looks"][1];
  EXPECT_EQ(look["t_s"], 20.0);
  EXPECT_EQ(look["step"], 20);
  EXPECT_EQ(look["objects"], 100'000);
  EXPECT_EQ(look["way"], "frozen");
  EXPECT_NEAR(look["paused_ms"].get<double>(), 1.2, 1e-9);
  const nlohmann::json& owner = json["owners"][0];
  EXPECT_EQ(owner["rank"], 1);
  EXPECT_EQ(owner["path"], "__main__.collator.cache");
  EXPECT_EQ(owner["type"], "dict");
  EXPECT_EQ(owner["entries"], 1'204);
  EXPECT_EQ(owner["retained_bytes"], 1'204 * kOwnerMiB);
  EXPECT_EQ(owner["growth_bytes"], 40 * kOwnerMiB);
  EXPECT_NEAR(owner["growth_bytes_per_step"].get<double>(), 1024.0 * 1024.0, 1.0);
  EXPECT_NEAR(owner["growth_bytes_per_s"].get<double>(), 1024.0 * 1024.0, 1.0);
  EXPECT_NEAR(owner["share_of_growth"].get<double>(), 1.0, 1e-9);
  EXPECT_EQ(owner["verdict"], "growing");
  EXPECT_EQ(owner["undetermined"], true);
  EXPECT_EQ(owner["because"][0]["kind"], "entries_per_step");
  EXPECT_EQ(owner["because"][0]["speaks_for"], "leak");
  EXPECT_EQ(owner["because"][1]["speaks_for"], "warmup");
  EXPECT_EQ(owner["holds"][0]["type"], "torch.Tensor");
  EXPECT_EQ(owner["holds"][0]["shape"], nlohmann::json::array({256, 1024}));
  EXPECT_EQ(json["owners"][1]["verdict"], "stable");
  EXPECT_EQ(json["owners"][1]["growth_bytes_per_s"], 0.0);
  EXPECT_TRUE(json["owners"][1]["growth_bytes_per_step"].is_null());
  EXPECT_NEAR(json["coverage"]["processes"][0]["explained_share"].get<double>(), 1.0, 1e-9);
  EXPECT_TRUE(json["types"].is_array());
  EXPECT_TRUE(json["tensors"].is_array());
}

}  // namespace
}  // namespace tidemark::report
