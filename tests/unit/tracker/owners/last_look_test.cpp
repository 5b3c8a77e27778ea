// SPDX-License-Identifier: Apache-2.0
#include "tracker/owners/last_look.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "tests/support/owner_run.h"

namespace tidemark::tracker {
namespace {

using tests::kOwnerMiB;
using tests::OwnerRun;
using tests::trainer_record;

struct Looked {
  explicit Looked(const std::vector<Tick>& ticks, double end_s = 44.0) {
    for (const Tick& tick : ticks) {
      EXPECT_TRUE(builder->add(tick));
    }
    EXPECT_TRUE(builder->end(end_s));
  }
  std::optional<LastLook> last() {
    ranking = rank_owners(builder->owners(), {});
    return find_last_look(builder->owners(), ranking);
  }
  std::unique_ptr<OwnerTrackBuilder> builder = std::make_unique<OwnerTrackBuilder>();
  OwnerRanking ranking;
};

TEST(LastLook, NamesWhoHeldWhatHadGrown) {
  Looked looked(tests::leaking_collator().ticks(3));

  const auto last = looked.last();

  ASSERT_TRUE(last);
  EXPECT_EQ(last->process->key, trainer_record().key);
  EXPECT_EQ(last->after, AfterLook::kEndOfRun);
  EXPECT_NEAR(last->before_s, 4.0, 1e-9);
  EXPECT_NEAR(last->span_s, 40.0, 1e-9);
  ASSERT_EQ(last->holders.size(), 1U);
  EXPECT_TRUE(last->has_growth());
  EXPECT_EQ(last->holders[0].owner->record().path, "__main__.collator.cache");
  EXPECT_EQ(last->holders[0].grown_bytes, 40 * kOwnerMiB);
  EXPECT_NEAR(last->holders[0].share_of_growth.value_or(0.0), 1.0, 1e-9);
}

TEST(LastLook, NamesWhoHeldMostAfterOneLook) {
  Looked looked(tests::leaking_collator().ticks(1), 1.0);

  const auto last = looked.last();

  ASSERT_TRUE(last);
  EXPECT_FALSE(last->has_growth());
  ASSERT_EQ(last->holders.size(), 3U);
  EXPECT_EQ(last->holders[0].owner->record().path, "__main__.collator.cache");
  EXPECT_EQ(last->holders[0].held_bytes, 1164 * kOwnerMiB);
  EXPECT_EQ(last->holders[1].owner->record().path, "__main__.dataset");
}

TEST(LastLook, SaysWhatCameAfterIt) {
  std::vector<Tick> ticks = tests::leaking_collator().ticks(3);
  Looked exited(ticks);
  ProcessRecord ended = trainer_record();
  ended.exited_s = 42.5;
  EXPECT_TRUE(exited.builder->process_ended(ended));
  EXPECT_EQ(exited.last()->after, AfterLook::kExit);
  EXPECT_NEAR(exited.last()->before_s, 2.5, 1e-9);

  Tick kill;
  kill.t_s = 42.0;
  kill.events.push_back({41.5, EventKind::kOomKill, {}, ""});
  ticks.push_back(kill);
  Looked killed(ticks);
  EXPECT_TRUE(killed.builder->process_ended(ended));
  EXPECT_EQ(killed.last()->after, AfterLook::kOomKill);
  EXPECT_NEAR(killed.last()->before_s, 1.5, 1e-9);
}

TEST(LastLook, DoesNotNameWhatTheLastLookDidNot) {
  OwnerRun run = tests::leaking_collator();
  run.add(tests::owner_record("__main__.gone", "list"), [](std::size_t look) {
    OwnerSample sample;
    sample.grown_bytes = 500 * kOwnerMiB;
    return look == 1 ? std::optional(sample) : std::nullopt;
  });
  Looked looked(run.ticks(3));

  const auto last = looked.last();

  ASSERT_EQ(last->holders.size(), 1U);
  EXPECT_EQ(last->holders[0].owner->record().path, "__main__.collator.cache");
}

TEST(LastLook, IsNoneWhereNoLookFoundAnything) {
  OwnerRun run = tests::leaking_collator();
  run.adjust = [](HeapFacts::OfProcess& of, std::size_t) {
    of.look.objects = 0;
    of.look.problem = "there is no Python in it";
  };

  EXPECT_FALSE(Looked(run.ticks(2)).last());
}

}  // namespace
}  // namespace tidemark::tracker
