// SPDX-License-Identifier: Apache-2.0
#include "tracker/owners/cache_bound.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/owner_run.h"

namespace tidemark::tracker {
namespace {

using tests::constant_bytes;
using tests::entries_at;
using tests::kOwnerMiB;
using tests::owner_record;
using tests::OwnerRun;

// A cache that gets an entry each second, from 100 on, for 40 s.
struct Bounded {
  RunOwners run;
  OwnerRanking ranking;
  std::optional<CacheBound> bound;
};

Bounded bounded(OwnerRun& made, const std::string& type = "dict") {
  made.add_process(tests::trainer_record());
  made.add(owner_record("__main__.cache", type),
           entries_at([](std::size_t look) { return 100 + 20 * look; }));
  OwnerTrackBuilder builder;
  for (const Tick& tick : made.ticks(3)) {
    EXPECT_TRUE(builder.add(tick));
  }
  Bounded result{builder.owners(), {}, std::nullopt};
  result.ranking = rank_owners(result.run, {});
  for (const RankedOwner& owner : result.ranking.owners) {
    if (owner.record().path == "__main__.cache") {
      result.bound = cache_bound(owner, result.ranking, result.run);
    }
  }
  return result;
}

void add_container(OwnerRun& run, const std::string& path, std::uint64_t entries) {
  run.add(owner_record(path, "list", OwnerKind::kName), [entries](std::size_t look) {
    auto sample = constant_bytes(10 * kOwnerMiB)(look);
    sample->entries = entries;
    return sample;
  });
}

TEST(CacheBound, IsTheLengthOfTheDataSet) {
  OwnerRun run;
  add_container(run, "__main__.train_set.samples", 500);

  const Bounded result = bounded(run);

  ASSERT_TRUE(result.bound);
  EXPECT_EQ(result.bound->samples, 500U);
  EXPECT_EQ(result.bound->data_set->record().path, "__main__.train_set.samples");
  EXPECT_FALSE(result.bound->is_exceeded);
  EXPECT_NEAR(result.bound->in_s.value_or(0.0), 360.0, 1.0);
}

TEST(CacheBound, IsExceededByACacheWithMoreEntries) {
  OwnerRun run;
  add_container(run, "__main__.dataset", 120);

  const Bounded result = bounded(run);

  ASSERT_TRUE(result.bound);
  EXPECT_TRUE(result.bound->is_exceeded);
  EXPECT_FALSE(result.bound->in_s);
}

TEST(CacheBound, IsNotKnownFromWhatIsCalledOtherwise) {
  for (const char* path : {"__main__.metadata", "__main__.names", "__main__.data.config.names"}) {
    OwnerRun run;
    add_container(run, path, 500);

    EXPECT_FALSE(bounded(run).bound) << path;
  }
}

TEST(CacheBound, IsNotKnownForAListWhichHasNoKeys) {
  OwnerRun run;
  add_container(run, "__main__.dataset", 500);

  EXPECT_FALSE(bounded(run, "list").bound);
}

// Nobody looks for the first 40 s, in which an epoch is measured.
TEST(CacheBound, IsTheEndOfAMarkedEpoch) {
  OwnerRun made;
  made.add_process(tests::trainer_record());
  made.epoch_steps = 30;
  made.add(owner_record("__main__.cache"),
           entries_at([](std::size_t look) { return 100 + 20 * look; }));
  std::vector<Tick> ticks = made.ticks(4);
  ticks[0].heap.looks.clear();
  ticks[1].heap.looks.clear();
  OwnerTrackBuilder builder;
  for (const Tick& tick : ticks) {
    EXPECT_TRUE(builder.add(tick));
  }
  const OwnerRanking ranking = rank_owners(builder.owners(), {});
  ASSERT_EQ(ranking.owners.size(), 1U);

  const auto bound = cache_bound(ranking.owners.front(), ranking, builder.owners());

  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->data_set, nullptr);
  EXPECT_EQ(bound->samples, 30U);
  EXPECT_NEAR(bound->in_s.value_or(0.0), 10.0, 1.0);
}

}  // namespace
}  // namespace tidemark::tracker
