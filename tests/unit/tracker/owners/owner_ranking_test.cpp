// SPDX-License-Identifier: Apache-2.0
#include "tracker/owners/owner_ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/owner_run.h"

namespace tidemark::tracker {
namespace {

using tests::entries_at;
using tests::kOwnerMiB;
using tests::owner_record;
using tests::OwnerRun;
using tests::trainer_record;
using tests::worker_record;

constexpr double kMiB = 1024.0 * 1024.0;

RunOwners built(const std::vector<Tick>& ticks) {
  OwnerTrackBuilder builder;
  EXPECT_TRUE(builder.begin({}));
  for (const Tick& tick : ticks) {
    EXPECT_TRUE(builder.add(tick));
  }
  EXPECT_TRUE(builder.end(ticks.back().t_s));
  return builder.owners();
}

OwnerRun one_owner(const std::function<std::uint64_t(std::size_t)>& entries,
                   const std::string& type = "dict") {
  OwnerRun run;
  run.add_process(trainer_record());
  run.add(owner_record("__main__.kept", type), entries_at(entries));
  return run;
}

std::vector<std::string> evidence_of(const RankedOwner& owner) {
  std::vector<std::string> names;
  for (const OwnerEvidence& evidence : owner.first().evidence) {
    names.emplace_back(owner_evidence_name(evidence.kind));
  }
  return names;
}

TEST(OwnerRanking, NamesWhatGrowsWithItsRatePerStep) {
  const RunOwners run = built(tests::leaking_collator().ticks(3));

  const OwnerRanking ranking = rank_owners(run, {});

  ASSERT_EQ(ranking.owners.size(), 3U);
  const RankedOwner& first = ranking.owners.front();
  EXPECT_EQ(first.record().path, "__main__.collator.cache");
  EXPECT_EQ(first.verdict, Verdict::kGrowing);
  EXPECT_TRUE(first.undetermined);
  EXPECT_NEAR(first.rate.bytes_per_step.value_or(0.0), kMiB, 1.0);
  EXPECT_NEAR(first.rate.bytes_per_s.value_or(0.0), kMiB, 1.0);
  EXPECT_NEAR(first.growth_bytes, 40.0 * kMiB, 1.0);
  EXPECT_NEAR(first.share_of_growth.value_or(0.0), 1.0, 1e-9);
  EXPECT_EQ(first.first().looks, 3U);
  EXPECT_EQ(first.first().grown_looks, 3U);
  EXPECT_EQ(first.entries, 1'204U);
  EXPECT_NEAR(first.entries_per_step.value_or(0.0), 1.0, 1e-9);
  EXPECT_EQ(ranking.growing(), 1U);
  EXPECT_EQ(ranking.owners[1].record().path, "__main__.dataset");
  EXPECT_EQ(ranking.owners[1].verdict, Verdict::kStable);
}

TEST(OwnerRanking, GivesTheSlowestAndTheFastestTimeAfterAFewLooks) {
  const RunOwners run =
      built(one_owner([](std::size_t look) { return look == 2 ? 50U : 10U * look; }).ticks(3));

  const RankedOwner owner = rank_owners(run, {}).owners.at(0);

  EXPECT_NEAR(owner.rate.low_bytes_per_step.value_or(0.0), 0.5 * kMiB, 1.0);
  EXPECT_NEAR(owner.rate.bytes_per_step.value_or(0.0), 1.25 * kMiB, 1.0);
  EXPECT_NEAR(owner.rate.high_bytes_per_step.value_or(0.0), 2.0 * kMiB, 1.0);
}

TEST(OwnerRanking, CountsByTimeWhereNoStepIsKnown) {
  OwnerRun made = one_owner([](std::size_t look) { return 10U * look; });
  made.with_steps = false;

  const RunOwners run = built(made.ticks(3));
  const RankedOwner owner = rank_owners(run, {}).owners.at(0);

  EXPECT_NEAR(owner.rate.bytes_per_s.value_or(0.0), 0.5 * kMiB, 1.0);
  EXPECT_FALSE(owner.rate.bytes_per_step);
  EXPECT_NEAR(owner.entries_per_s.value_or(0.0), 0.5, 1e-9);
  EXPECT_THAT(evidence_of(owner), testing::ElementsAre("entries_per_s", "keyed"));
}

// It held as much before, whether anybody asked then or not.
TEST(OwnerRanking, CountsGrowthFromTheFirstLookOnWhoeverWasNamedThen) {
  OwnerRun made;
  made.add_process(trainer_record());
  const auto grown = entries_at([](std::size_t look) { return 20U * look; });
  made.add(owner_record("__main__.kept"),
           [&](std::size_t look) { return look < 2 ? std::nullopt : grown(look); });

  const RunOwners run = built(made.ticks(3));
  const RankedOwner owner = rank_owners(run, {}).owners.at(0);

  EXPECT_EQ(owner.verdict, Verdict::kGrowing);
  EXPECT_NEAR(owner.rate.bytes_per_step.value_or(0.0), kMiB, 1.0);
  EXPECT_EQ(owner.first().grown_looks, 2U);
  EXPECT_EQ(owner.first().looks, 3U);
}

TEST(OwnerRanking, DoesNotCallACacheThatHasFilledALeak) {
  const auto fills = [](std::size_t look) { return look == 0 ? 0U : 30U; };

  const RunOwners few = built(one_owner(fills).ticks(3));
  const RunOwners many = built(one_owner(fills).ticks(40));

  const RankedOwner early = rank_owners(few, {}).owners.at(0);
  EXPECT_EQ(early.verdict, Verdict::kWarmup);
  EXPECT_TRUE(early.undetermined);
  EXPECT_THAT(evidence_of(early), testing::ElementsAre("keyed", "stopped"));
  const RankedOwner late = rank_owners(many, {}).owners.at(0);
  EXPECT_EQ(late.verdict, Verdict::kWarmup);
  EXPECT_FALSE(late.undetermined);
  EXPECT_FALSE(late.rate.bytes_per_s);
}

// Nobody counted them at the first look, where it did not grow yet.
TEST(OwnerRanking, ComparesEntriesOnlyWithEntries) {
  OwnerRun made;
  made.add_process(trainer_record());
  const auto grown = entries_at([](std::size_t look) { return 20U * look; });
  made.add(owner_record("__main__.kept"),
           [&](std::size_t look) { return look == 0 ? std::nullopt : grown(look); });

  const RunOwners run = built(made.ticks(3));
  const RankedOwner owner = rank_owners(run, {}).owners.at(0);

  EXPECT_EQ(owner.verdict, Verdict::kGrowing);
  EXPECT_THAT(evidence_of(owner), testing::ElementsAre("keyed"));
}

TEST(OwnerRanking, TakesTheEntriesOfTheFirstLookFromALaterOne) {
  OwnerRun made;
  made.add_process(trainer_record());
  const auto grown = entries_at([](std::size_t look) { return 5 + 20U * look; });
  made.add(owner_record("__main__.kept"), [&](std::size_t look) -> std::optional<OwnerSample> {
    auto sample = look == 0 ? std::nullopt : grown(look);
    if (sample) {
      sample->first_entries = 5;
    }
    return sample;
  });

  const RunOwners run = built(made.ticks(3));
  const RankedOwner owner = rank_owners(run, {}).owners.at(0);

  EXPECT_NEAR(owner.entries_per_step.value_or(0.0), 1.0, 1e-9);
  EXPECT_THAT(evidence_of(owner), testing::ElementsAre("entries_per_step", "keyed"));
}

// The first step of the log was read after the first look.
TEST(OwnerRanking, ComparesTimesOfOneKind) {
  OwnerRun made = one_owner([](std::size_t look) { return 20U * look; });
  std::vector<Tick> ticks = made.ticks(3);
  ticks[0].markers.clear();
  ticks[0].heap.looks[0].look.step.reset();
  ticks[1].markers.erase(ticks[1].markers.begin());

  const RunOwners run = built(ticks);
  const RankedOwner owner = rank_owners(run, {}).owners.at(0);

  EXPECT_EQ(owner.verdict, Verdict::kGrowing);
  EXPECT_THAT(evidence_of(owner), testing::ElementsAre("entries_per_s", "keyed"));
}

TEST(OwnerRanking, HasAnOwnerOnceThatIsANameAsWell) {
  OwnerRun made = one_owner([](std::size_t look) { return 20U * look; });
  made.add(owner_record("__main__.kept", "dict", OwnerKind::kName),
           tests::constant_bytes(50 * kOwnerMiB));

  const RunOwners run = built(made.ticks(3));
  const OwnerRanking ranking = rank_owners(run, {});

  ASSERT_EQ(ranking.owners.size(), 1U);
  EXPECT_EQ(ranking.owners[0].record().kind, OwnerKind::kContainer);
}

TEST(OwnerRanking, NamesNoSawTooth) {
  const RunOwners run =
      built(one_owner([](std::size_t look) { return 10U * (look % 3); }).ticks(31));

  EXPECT_EQ(rank_owners(run, {}).growing(), 0U);
}

// A list that gets one more each step has no warm-up that lasts as long as that of a whole job.
TEST(OwnerRanking, CallsConstantGrowthOfAListALeakSooner) {
  const auto one_a_step = [](std::size_t look) { return 20U * look; };

  const RunOwners list = built(one_owner(one_a_step, "list").ticks(24));
  const RunOwners dict = built(one_owner(one_a_step, "dict").ticks(24));

  EXPECT_EQ(rank_owners(list, {}).owners.at(0).verdict, Verdict::kLeak);
  EXPECT_FALSE(rank_owners(list, {}).owners.at(0).undetermined);
  EXPECT_EQ(rank_owners(dict, {}).owners.at(0).verdict, Verdict::kGrowing);
}

TEST(OwnerRanking, KnowsWhatSpeaksForAndAgainstAWarmup) {
  const RunOwners list = built(one_owner([](std::size_t n) { return 20U * n; }, "list").ticks(3));
  EXPECT_THAT(evidence_of(rank_owners(list, {}).owners.at(0)),
              testing::ElementsAre("entries_per_step", "appended"));

  const RunOwners slowing = built(one_owner([](std::size_t n) {
                                    return n == 0 ? 0U : n == 1 ? 30U : 40U;
                                  }).ticks(3));
  EXPECT_THAT(evidence_of(rank_owners(slowing, {}).owners.at(0)),
              testing::ElementsAre("keyed", "slowing"));
}

// A cache by the index of a sample ends with the first epoch.
TEST(OwnerRanking, AsksWhetherAnEpochHasPassed) {
  OwnerRun made = one_owner([](std::size_t look) { return 20U * look; });
  made.epoch_steps = 30;
  const RunOwners past = built(made.ticks(4));
  EXPECT_THAT(evidence_of(rank_owners(past, {}).owners.at(0)),
              testing::ElementsAre("entries_per_step", "past_epoch", "keyed"));

  std::vector<Tick> ticks = made.ticks(4);
  ticks[0].heap.looks.clear();  // the run is older than the looks
  ticks[1].heap.looks.clear();
  const RunOwners within = built(ticks);
  EXPECT_THAT(evidence_of(rank_owners(within, {}).owners.at(0)),
              testing::Contains("within_first_epoch"));
}

TEST(OwnerRanking, PutsEqualPathsOfWorkersTogether) {
  OwnerRun made;
  made.add_process(trainer_record());
  for (const pid_t pid : {201, 202}) {
    ProcessRecord worker = worker_record();
    worker.key.pid = pid;
    worker.role = Role::kDataloaderWorker;
    made.add_process(worker);
    OwnerRecord owner = owner_record("__main__.dataset.cache");
    owner.key = worker.key;
    made.add(owner, entries_at([](std::size_t look) { return 10U * look; }));
  }

  const RunOwners run = built(made.ticks(3));
  const OwnerRanking ranking = rank_owners(run, {});

  ASSERT_EQ(ranking.owners.size(), 1U);
  const RankedOwner& owner = ranking.owners.front();
  EXPECT_EQ(owner.members.size(), 2U);
  EXPECT_NEAR(owner.growth_bytes, 40.0 * kMiB, 1.0);
  EXPECT_NEAR(owner.rate.bytes_per_step.value_or(0.0), kMiB, 1.0);
  EXPECT_EQ(owner.entries, 40U);
  EXPECT_NEAR(owner.share_of_growth.value_or(0.0), 1.0, 1e-9);
  ASSERT_EQ(owner.holds.size(), 1U);
  EXPECT_EQ(owner.holds[0].count, 40U);
}

TEST(OwnerRanking, LeavesOutWhatGrowsByNextToNothing) {
  OwnerRun made = tests::leaking_collator();
  made.add(owner_record("logging.root.handlers", "list"), [](std::size_t look) {
    OwnerSample sample;
    sample.entries = 100 + look;
    sample.grown_bytes = 4'096 * look;
    return std::optional(sample);
  });

  const RunOwners run = built(made.ticks(3));

  EXPECT_EQ(rank_owners(run, {}).growing(), 1U);
}

TEST(OwnerRanking, SharesOutNoGrowthThatIsTooSmall) {
  OwnerRun made;
  made.add_process(trainer_record());
  made.add(owner_record("__main__.kept"), [](std::size_t look) {
    OwnerSample sample;
    sample.grown_bytes = 100'000 * look;
    return std::optional(sample);
  });

  const RunOwners run = built(made.ticks(3));
  const OwnerRanking ranking = rank_owners(run, {});

  EXPECT_TRUE(ranking.owners.at(0).grows());
  EXPECT_EQ(ranking.owners.at(0).share_of_growth, std::nullopt);
  EXPECT_EQ(ranking.processes.at(0).explained_share, std::nullopt);
}

TEST(OwnerCoverage, IsWhatOwnersHoldOfTheGrowth) {
  OwnerRun made = tests::leaking_collator();
  made.unowned = [](std::size_t look) { return 5 * kOwnerMiB * look; };
  OwnerRecord native = owner_record("ReluBackward0", "ReluBackward0", OwnerKind::kNative);
  made.add(native, entries_at([](std::size_t look) { return 5 * look; }));

  const RunOwners run = built(made.ticks(3));
  const OwnerCoverage coverage = rank_owners(run, {}).processes.at(0);

  EXPECT_NEAR(coverage.footprint_growth_bytes.value_or(0.0), 60.0 * kMiB, 1.0);
  EXPECT_NEAR(coverage.owned_bytes, 50.0 * kMiB, 1.0);
  EXPECT_NEAR(coverage.native_bytes, 10.0 * kMiB, 1.0);
  EXPECT_NEAR(coverage.explained_share.value_or(0.0), 50.0 / 60.0, 1e-9);
}

TEST(TypeGrowth, IsKnownOfWhatWasNamedAtBothLooks) {
  OwnerRun made = tests::leaking_collator();
  made.adjust = [](HeapFacts::OfProcess& of, std::size_t look) {
    of.types = {{"dict", 1'000, 64 * kOwnerMiB}, {"str", 10 + look, 1'000 + look}};
    if (look > 0) {
      of.types.push_back({"Node", 5, 100 * kOwnerMiB});
      of.types.push_back({"tuple", 5, 900});
    }
    of.tensors = {{"cpu", "float32", {4, 4}, true, false, false, false, look, look * kOwnerMiB}};
  };

  const RunOwners run = built(made.ticks(2));
  const std::vector<TypeGrowth> types = type_growth(run.processes.at(0));
  const std::vector<TensorGrowth> tensors = tensor_growth(run.processes.at(0));

  ASSERT_EQ(types.size(), 4U);
  EXPECT_EQ(types[0].now.type, "Node");
  EXPECT_EQ(types[0].growth_count, 5.0);
  EXPECT_EQ(types[1].now.type, "str");
  EXPECT_EQ(types[1].growth_bytes, 1.0);
  EXPECT_EQ(types[2].now.type, "dict");
  EXPECT_EQ(types[2].growth_bytes, 0.0);
  EXPECT_EQ(types[3].growth_bytes, std::nullopt) << "it may have been too small to be named";
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(tensors[0].growth_bytes, kMiB);
}

TEST(OwnerTracks, KeepTheFirstLookWhenThereAreTooMany) {
  constexpr std::size_t kLooks = OwnerTrackBuilder::kMostLooks * 3;
  const RunOwners run = built(tests::leaking_collator().ticks(kLooks));

  const LookedProcess& process = run.processes.at(0);
  EXPECT_LE(process.looks.size(), OwnerTrackBuilder::kMostLooks);
  EXPECT_EQ(process.looks.front().t_s, 0.0);
  EXPECT_EQ(process.looks.size() + process.looks_left_out, kLooks);
  const std::vector<OwnerPoint>& points = run.owners.at(0).points;
  ASSERT_EQ(points.size(), process.looks.size());
  for (const OwnerPoint& point : points) {
    EXPECT_EQ(point.t_s, process.looks.at(point.look).t_s);
  }
}

TEST(OwnerTracks, SetALookApartThatFoundNothing) {
  OwnerRun made = tests::leaking_collator();
  made.adjust = [](HeapFacts::OfProcess& of, std::size_t look) {
    if (look == 1) {
      of = {};
      of.look.key = trainer_record().key;
      of.look.t_s = 20.0;
      of.look.problem = "it is not allowed";
    }
  };

  const RunOwners run = built(made.ticks(3));

  EXPECT_EQ(run.processes.at(0).looks.size(), 2U);
  ASSERT_EQ(run.processes.at(0).failed.size(), 1U);
  EXPECT_EQ(run.processes.at(0).failed[0].problem, "it is not allowed");
  EXPECT_EQ(rank_owners(run, {}).owners.at(0).first().looks, 2U);
}

// Files can be made up.
TEST(OwnerTracks, TakeWhatBelongsToNothing) {
  Tick tick = tests::empty_tick(1.0);
  OwnerRecord owner = owner_record(std::string(10'000, 'x'));
  owner.owner = 1;
  tick.heap.owners = {owner, owner};
  HeapFacts::OfProcess& of = tick.heap.looks.emplace_back();
  of.look.key = trainer_record().key;
  of.look.objects = 1;
  of.owners.resize(3);
  of.owners[0].owner = 1;
  of.owners[1].owner = 1;
  of.owners[2].owner = 99;
  Tick earlier = tick;
  earlier.heap.looks[0].look.t_s = -5.0;

  const RunOwners run = built({tick, earlier});

  ASSERT_EQ(run.owners.size(), 1U);
  EXPECT_EQ(run.owners[0].record.path.size(), kMostOwnerTextBytes);
  EXPECT_EQ(run.owners[0].points.size(), 1U);
  EXPECT_EQ(rank_owners(run, {}).growing(), 0U);
}

}  // namespace
}  // namespace tidemark::tracker
