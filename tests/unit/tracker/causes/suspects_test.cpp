// SPDX-License-Identifier: Apache-2.0
#include "tracker/causes/suspects.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/judged_run.h"
#include "tests/support/owner_run.h"

namespace tidemark::tracker {
namespace {

using tests::constant_bytes;
using tests::entries_at;
using tests::kOwnerMiB;
using tests::owner_record;
using tests::OwnerRun;
using tests::trainer_record;

constexpr double kMiB = 1024.0 * 1024.0;

// Looks at a process, and what they say.
struct Looked {
  explicit Looked(const OwnerRun& run, std::size_t looks = 3) {
    for (const Tick& tick : run.ticks(looks)) {
      EXPECT_TRUE(builder->add(tick));
    }
    ranking = rank_owners(builder->owners(), {});
  }
  SuspectInputs inputs() const {
    SuspectInputs inputs;
    inputs.owners = &builder->owners();
    inputs.ranking = &ranking;
    return inputs;
  }
  SuspectRow row(Suspect suspect) const {
    return judge_suspects(inputs())[static_cast<std::size_t>(suspect)];
  }

  std::unique_ptr<OwnerTrackBuilder> builder = std::make_unique<OwnerTrackBuilder>();
  OwnerRanking ranking;
};

SuspectRow row_of(const SuspectInputs& inputs, Suspect suspect) {
  const SuspectRows rows = judge_suspects(inputs);
  EXPECT_EQ(rows[static_cast<std::size_t>(suspect)].suspect, suspect);
  return rows[static_cast<std::size_t>(suspect)];
}

void expect(const SuspectRow& row, SuspectState state, SuspectRule rule) {
  EXPECT_EQ(suspect_state_name(row.state), suspect_state_name(state)) << suspect_name(row.suspect);
  EXPECT_EQ(suspect_rule_name(row.rule), suspect_rule_name(rule)) << suspect_name(row.suspect);
}

OwnerRun with_collector(OwnerRun run) {
  run.adjust = [](HeapFacts::OfProcess& of, std::size_t) { of.look.interpreter.gc_enabled = true; };
  return run;
}

// A mebibyte more at each step, 20 steps from one look to the next.
auto growing() {
  return entries_at([](std::size_t look) { return 20 * look; });
}

OwnerRun one_that_grows(OwnerRecord record) {
  OwnerRun run;
  run.add_process(trainer_record());
  run.add(std::move(record), growing());
  return with_collector(std::move(run));
}

struct NamedPath {
  std::string path;
  std::string type;  // of what stands before the last name
  std::optional<Suspect> suspect;
};

TEST(SuspectOfOwner, IsToldByTheLastNameOrTypeThatSaysSomething) {
  const std::vector<NamedPath> paths = {
      {"__main__.train_dataset.samples", "", Suspect::kDatasetLoading},
      {"_worker_loop() locals: dataset.seen", "", Suspect::kDatasetLoading},
      {"__main__.batches", "torch.utils.data.dataloader.DataLoader", Suspect::kDatasetLoading},
      {"__main__.model.weight.grad", "", Suspect::kGradientAccumulation},
      {"__main__.total.grad_fn (AddBackward0)", "", Suspect::kGradientAccumulation},
      {"__main__.trainer.state.log_history", "", Suspect::kLogHistory},
      {"__main__.trainer.tokenizer.cache", "", Suspect::kProcessorCaches},
      {"__main__.collator.processor._cache", "", Suspect::kProcessorCaches},
      {"__main__.x", "transformers.tokenization_utils_fast.PreTrainedTokenizerFast",
       Suspect::kProcessorCaches},
      {"transformers.image_utils.resize (lru_cache)", "", Suspect::kProcessorCaches},
      {"__main__.trainer.optimizer.state", "", Suspect::kOptimizerState},
      {"__main__.opt.state", "torch.optim.adam.Adam", Suspect::kOptimizerState},
      {"main() locals: losses", "", Suspect::kMetricsLists},
      {"__main__.trainer.metrics", "", Suspect::kMetricsLists},
      {"__main__.loader.collate_fn.cache", "", Suspect::kCollator},
      {"__main__.batcher.cache", "UnslothVisionDataCollator", Suspect::kCollator},
      {"__main__.things", "Things", std::nullopt},
  };
  for (const NamedPath& named : paths) {
    OwnerRecord owner = owner_record(named.path);
    if (!named.type.empty()) {
      owner.steps = {{"module __main__", "module"}, {"x", named.type}, {".y", "dict"}};
    }
    EXPECT_EQ(suspect_of(owner), named.suspect) << named.path;
  }
}

TEST(SuspectOfOwner, IsNotToldByWhatItHolds) {
  OwnerRecord owner = owner_record("__main__.kept", "list");
  owner.steps = {{"module __main__", "module"}, {"kept", "list"}, {"[*]", "datasets.Dataset"}};

  EXPECT_EQ(suspect_of(owner), std::nullopt);
}

TEST(SuspectOfOwner, KnowsGarbageAndGraphsByTheirKind) {
  EXPECT_EQ(suspect_of(owner_record("", "", OwnerKind::kGarbage)), Suspect::kGarbage);
  EXPECT_EQ(suspect_of(owner_record("__main__.kept", "AddmmBackward0")),
            Suspect::kGradientAccumulation);
}

TEST(SuspectOfLine, IsToldByItsFunctionBeforeItsFile) {
  EXPECT_EQ(suspect_of_line("dataset.py:41 in collate"), Suspect::kCollator);
  EXPECT_EQ(suspect_of_line("dataset.py:41 in __getitem__"), Suspect::kDatasetLoading);
  EXPECT_EQ(suspect_of_line("train.py:41 in step"), std::nullopt);
}

TEST(Suspects, NameTheOneWhoseOwnerGrowsAndClearThoseThatStandStill) {
  const Looked looked(with_collector(tests::leaking_collator()));

  const SuspectRow collator = looked.row(Suspect::kCollator);
  expect(collator, SuspectState::kThisIsIt, SuspectRule::kOwnerGrows);
  EXPECT_EQ(collator.what, "__main__.collator.cache");
  EXPECT_NEAR(collator.growth_bytes.value_or(0.0), 40.0 * kMiB, 1.0);
  EXPECT_NEAR(collator.share.value_or(0.0), 1.0, 1e-9);
  const SuspectRow dataset = looked.row(Suspect::kDatasetLoading);
  expect(dataset, SuspectState::kNotIt, SuspectRule::kOwnerConstant);
  EXPECT_EQ(dataset.what, "__main__.dataset");
  EXPECT_EQ(dataset.bytes, 210.0 * kMiB);
  EXPECT_EQ(dataset.looks, 3U);
  expect(looked.row(Suspect::kOptimizerState), SuspectState::kNotIt, SuspectRule::kOwnerConstant);
  expect(looked.row(Suspect::kGarbage), SuspectState::kNotIt, SuspectRule::kNoGarbage);
  const SuspectRow history = looked.row(Suspect::kLogHistory);
  expect(history, SuspectState::kNotIt, SuspectRule::kOthersHoldIt);
  EXPECT_EQ(history.what, "__main__.collator.cache");
  expect(looked.row(Suspect::kCompileWorkers), SuspectState::kCannotTell, SuspectRule::kNotWatched);
}

TEST(Suspects, AreNotClearedByAnOwnerWhoseNameSaysNothing) {
  const Looked looked(one_that_grows(owner_record("__main__.kept", "list")));

  for (const Suspect suspect :
       {Suspect::kCollator, Suspect::kMetricsLists, Suspect::kDatasetLoading}) {
    const SuspectRow row = looked.row(suspect);
    expect(row, SuspectState::kCannotTell, SuspectRule::kUnnamedOwner);
    EXPECT_EQ(row.what, "__main__.kept");
  }
  // Those have names and types of libraries.
  for (const Suspect suspect :
       {Suspect::kLogHistory, Suspect::kOptimizerState, Suspect::kProcessorCaches}) {
    expect(looked.row(suspect), SuspectState::kNotIt, SuspectRule::kOthersHoldIt);
  }
}

TEST(Suspects, AreClearedWhereTheirOwnerGrowsByLittle) {
  OwnerRun run = with_collector(tests::leaking_collator());
  run.add(owner_record("__main__.trainer.metrics", "list"), [](std::size_t look) {
    OwnerSample sample;
    sample.entries = 100 * look;
    sample.grown_bytes = look * kOwnerMiB / 2;
    return std::optional(sample);
  });

  const SuspectRow metrics = Looked(run).row(Suspect::kMetricsLists);

  expect(metrics, SuspectState::kNotIt, SuspectRule::kOwnerSmall);
  EXPECT_LT(metrics.share.value_or(1.0), 0.05);
}

TEST(Suspects, CannotBeToldWithoutLooksOrAfterOneOrAPart) {
  expect(row_of({}, Suspect::kCollator), SuspectState::kCannotTell, SuspectRule::kNoLooks);
  expect(Looked(tests::leaking_collator(), 1).row(Suspect::kDatasetLoading),
         SuspectState::kCannotTell, SuspectRule::kOneLook);
  OwnerRun partial = with_collector(tests::leaking_collator());
  partial.adjust = [](HeapFacts::OfProcess& of, std::size_t) { of.look.is_partial = true; };
  expect(Looked(partial).row(Suspect::kDatasetLoading), SuspectState::kCannotTell,
         SuspectRule::kPartialLooks);
}

TEST(Suspects, CannotBeToldWhereObjectsDoNotExplainTheGrowth) {
  OwnerRun run = with_collector(tests::leaking_collator());
  run.unowned = [](std::size_t look) { return 80 * kOwnerMiB * look; };
  const Looked looked(run);

  expect(looked.row(Suspect::kLogHistory), SuspectState::kCannotTell, SuspectRule::kNotFound);
  expect(looked.row(Suspect::kCollator), SuspectState::kThisIsIt, SuspectRule::kOwnerGrows);
  expect(looked.row(Suspect::kDatasetLoading), SuspectState::kNotIt, SuspectRule::kOwnerConstant);
}

TEST(Suspects, AreNotConstantWhereTheyWereSeenOnce) {
  OwnerRun run = with_collector(tests::leaking_collator());
  run.add(owner_record("__main__.trainer.metrics", "list", OwnerKind::kName), [](std::size_t look) {
    OwnerSample sample;
    sample.reached_bytes = 5 * kOwnerMiB;
    return look == 2 ? std::optional(sample) : std::nullopt;
  });

  expect(Looked(run).row(Suspect::kMetricsLists), SuspectState::kNotIt, SuspectRule::kOthersHoldIt);
}

TEST(Suspects, SayWhatGrewAndStandsStillNow) {
  OwnerRun run;
  run.add_process(trainer_record());
  run.add(owner_record("__main__.dataset.cache"),
          entries_at([](std::size_t look) { return look == 0 ? 0U : 30U; }));

  const SuspectRow dataset = Looked(run, 6).row(Suspect::kDatasetLoading);

  expect(dataset, SuspectState::kNotIt, SuspectRule::kOwnerStopped);
  EXPECT_EQ(dataset.growth_bytes, 30.0 * kMiB);
}

TEST(Suspects, SeeGarbageThatPilesUp) {
  OwnerRun run = one_that_grows(owner_record("", "", OwnerKind::kGarbage));

  const SuspectRow garbage = Looked(run).row(Suspect::kGarbage);

  expect(garbage, SuspectState::kThisIsIt, SuspectRule::kGarbageGrows);
  EXPECT_NEAR(garbage.growth_bytes.value_or(0.0), 40.0 * kMiB, 1.0);
}

TEST(Suspects, DoNotClearGarbageWhereNobodyCouldSeeIt) {
  OwnerRun run = tests::leaking_collator();  // the state of its collector was not read
  run.unowned = [](std::size_t look) { return 80 * kOwnerMiB * look; };
  expect(Looked(run).row(Suspect::kGarbage), SuspectState::kCannotTell, SuspectRule::kNotFound);

  run.adjust = [](HeapFacts::OfProcess& of, std::size_t) {
    of.look.interpreter.gc_enabled = true;
    of.look.reading = HeapReading::kRunning;
    of.look.detour = "it ran while it was read";
  };
  expect(Looked(run).row(Suspect::kGarbage), SuspectState::kCannotTell, SuspectRule::kNotFound);
}

TensorSample graph_tensor(std::uint64_t bytes) {
  TensorSample tensor;
  tensor.device = "cpu";
  tensor.dtype = "float32";
  tensor.shape = {256, 1024};
  tensor.is_graph = true;
  tensor.count = bytes / kOwnerMiB;
  tensor.bytes = bytes;
  return tensor;
}

TEST(Suspects, SeeTensorsThatAreKeptWithTheirGraph) {
  OwnerRun run = one_that_grows(owner_record("__main__.kept", "list"));
  run.adjust = [](HeapFacts::OfProcess& of, std::size_t look) {
    of.tensors = {graph_tensor((5 + 20 * look) * kOwnerMiB)};
  };

  const SuspectRow graphs = Looked(run).row(Suspect::kGradientAccumulation);

  expect(graphs, SuspectState::kThisIsIt, SuspectRule::kGraphTensorsGrow);
  EXPECT_NEAR(graphs.growth_bytes.value_or(0.0), 40.0 * kMiB, 1.0);
}

TEST(Suspects, DoNotTakeTheGraphOfTheCurrentStepForOneThatIsKept) {
  OwnerRun run;  // nothing is owned: the growth is somewhere else
  run.add_process(trainer_record());
  run.unowned = [](std::size_t look) { return 30 * kOwnerMiB * look; };
  run.adjust = [](HeapFacts::OfProcess& of, std::size_t look) {
    of.tensors = {graph_tensor(look == 2 ? 60 * kOwnerMiB : kOwnerMiB)};
  };
  expect(Looked(run).row(Suspect::kGradientAccumulation), SuspectState::kCannotTell,
         SuspectRule::kNotFound);

  run.adjust = [](HeapFacts::OfProcess& of, std::size_t) {
    of.tensors = {graph_tensor(7 * kOwnerMiB)};
  };
  const SuspectRow constant = Looked(run).row(Suspect::kGradientAccumulation);
  expect(constant, SuspectState::kNotIt, SuspectRule::kGraphTensorsConstant);
  EXPECT_EQ(constant.bytes, 7.0 * kMiB);
}

// A run with compile workers, as it was judged.
JudgedRun with_compile_workers(double first_mib, double last_mib, Verdict verdict) {
  tests::HandMadeRun run = tests::leaking_run(1000, 1);
  run.tree().last_floor_bytes = 1400 * kMiB;
  Track role;
  role.kind = TrackKind::kRole;
  role.role = Role::kCompileWorker;
  role.most_processes = 9;
  run.tracks.tracks.push_back(role);
  SeriesVerdict series;
  series.verdict = verdict;
  series.first_floor_bytes = first_mib * kMiB;
  series.last_floor_bytes = last_mib * kMiB;
  run.verdict.tracks.push_back({1, Metric::kFootprint, series});
  return run.judged();
}

TEST(Suspects, TellCompileWorkersByTheirProcesses) {
  SuspectInputs inputs;
  const JudgedRun none = tests::leaking_run(1000, 1).judged();
  inputs.run = &none;
  expect(row_of(inputs, Suspect::kCompileWorkers), SuspectState::kNotIt, SuspectRule::kNoProcesses);

  const JudgedRun constant = with_compile_workers(300, 301, Verdict::kStable);
  inputs.run = &constant;
  const SuspectRow row = row_of(inputs, Suspect::kCompileWorkers);
  expect(row, SuspectState::kNotIt, SuspectRule::kProcessesConstant);
  EXPECT_EQ(row.processes, 9U);
  EXPECT_EQ(row.bytes, 301 * kMiB);

  const JudgedRun grown = with_compile_workers(300, 690, Verdict::kLeak);
  inputs.run = &grown;
  expect(row_of(inputs, Suspect::kCompileWorkers), SuspectState::kThisIsIt,
         SuspectRule::kProcessesGrow);

  JudgedRun early = with_compile_workers(300, 690, Verdict::kStable);
  early.verdict->tracks[1].series.undetermined = true;
  inputs.run = &early;
  expect(row_of(inputs, Suspect::kCompileWorkers), SuspectState::kCannotTell,
         SuspectRule::kTooEarly);
}

TEST(Suspects, AreAllClearedByARunThatStandsStill) {
  const JudgedRun still = tests::settled_run(1000).judged();
  SuspectInputs inputs;
  inputs.run = &still;

  for (const SuspectRow& row : judge_suspects(inputs)) {
    EXPECT_EQ(row.state, SuspectState::kNotIt) << suspect_name(row.suspect);
  }
  expect(row_of(inputs, Suspect::kCollator), SuspectState::kNotIt, SuspectRule::kNothingGrows);

  JudgedRun early = still;
  early.verdict->tracks[0].series.undetermined = true;
  inputs.run = &early;
  expect(row_of(inputs, Suspect::kCollator), SuspectState::kCannotTell, SuspectRule::kNoLooks);
}

TEST(Suspects, ClearTheDataSetWhenGrowthOutlastsTheEpoch) {
  tests::HandMadeRun made = tests::leaking_run(1000, 1);
  made.tree().patterns.back().from = {std::nullopt, 50.0};
  made.tree().patterns.back().to = {std::nullopt, 400.0};
  made.tracks.epoch_steps = 100.0;
  const JudgedRun run = made.judged();
  SuspectInputs inputs;
  inputs.run = &run;

  const SuspectRow row = row_of(inputs, Suspect::kDatasetLoading);
  expect(row, SuspectState::kNotIt, SuspectRule::kPastEpoch);
  EXPECT_NEAR(row.epochs.value_or(0.0), 3.5, 1e-9);

  made.tracks.epoch_steps = 300.0;
  const JudgedRun within = made.judged();
  inputs.run = &within;
  expect(row_of(inputs, Suspect::kDatasetLoading), SuspectState::kCannotTell,
         SuspectRule::kNoLooks);
}

TEST(Suspects, FollowKnownCausesOfTheRun) {
  JudgedRun run = tests::leaking_run(1000, 1).judged();
  for (const AdviceRule& rule : advice_rules()) {
    if (rule.advice.id == "logging_lists" || rule.advice.id == "tokenizer_cache") {
      run.verdict->advice.push_back(rule.advice);
    }
  }
  ASSERT_EQ(run.verdict->advice.size(), 2U);
  SuspectInputs inputs;
  inputs.run = &run;

  const SuspectRow row = row_of(inputs, Suspect::kMetricsLists);
  expect(row, SuspectState::kThisIsIt, SuspectRule::kCauseFits);
  EXPECT_EQ(row.what, "logging_lists");
  expect(row_of(inputs, Suspect::kProcessorCaches), SuspectState::kThisIsIt,
         SuspectRule::kCauseFits);
}

TEST(Suspects, FollowTheLineThatAllocatesWhatGrows) {
  SiteRanking lines;
  RankedLine line;
  line.name = "train.py:41 in collate";
  line.verdict = Verdict::kGrowing;
  line.growth_bytes_per_s = kMiB;
  line.growth_bytes = 40 * kMiB;
  line.share_of_growth = 0.7;
  lines.lines = {line};
  SuspectInputs inputs;
  inputs.lines = &lines;

  const SuspectRow row = row_of(inputs, Suspect::kCollator);
  expect(row, SuspectState::kThisIsIt, SuspectRule::kLineGrows);
  EXPECT_EQ(row.what, "train.py:41 in collate");

  lines.lines[0].share_of_growth = 0.02;
  expect(row_of(inputs, Suspect::kCollator), SuspectState::kCannotTell, SuspectRule::kNoLooks);
}

TEST(Suspects, BelieveAnInterventionBeforeAllElse) {
  const Looked looked(one_that_grows(owner_record("", "", OwnerKind::kGarbage)));
  SuspectInputs inputs = looked.inputs();
  auto& trial = inputs.trials[static_cast<std::size_t>(Suspect::kGarbage)];

  trial = SuspectTrial{false, 0.0};
  expect(row_of(inputs, Suspect::kGarbage), SuspectState::kNotIt, SuspectRule::kRuledOutByTrial);
  trial = SuspectTrial{true, 7 * kMiB};
  const SuspectRow row = row_of(inputs, Suspect::kGarbage);
  expect(row, SuspectState::kThisIsIt, SuspectRule::kConfirmedByTrial);
  EXPECT_EQ(row.bytes, 7 * kMiB);
}

}  // namespace
}  // namespace tidemark::tracker
