// SPDX-License-Identifier: Apache-2.0
#include "tracker/causes/interpreters.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/owner_run.h"
#include "tracker/owners/owner_ranking.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/track_builder.h"

namespace tidemark::tracker {
namespace {

using tests::kOwnerMiB;
using tests::OwnerRun;
using tests::trainer_record;

InterpreterFacts python(const std::string& release) {
  InterpreterFacts facts;
  facts.python = release;
  return facts;
}

TEST(PythonRelease, IsReadFromItsText) {
  EXPECT_EQ(parse_python_release("3.14.2")->patch, 2);
  EXPECT_EQ(parse_python_release("3.14.0rc1")->minor, 14);
  EXPECT_EQ(parse_python_release("3.13.12+")->patch, 12);
  for (const char* bad : {"", "3", "3.14", "3.14.", "x.y.z", "3.-1.2", "3.99999999999.1"}) {
    EXPECT_FALSE(parse_python_release(bad)) << bad;
  }
}

TEST(CollectsLate, IsWhatSomeReleasesDo) {
  EXPECT_TRUE(collects_late(python("3.14.0")));
  EXPECT_TRUE(collects_late(python("3.14.4")));
  EXPECT_FALSE(collects_late(python("3.14.5")));
  EXPECT_FALSE(collects_late(python("3.13.2")));
  EXPECT_FALSE(collects_late(python("")));
  InterpreterFacts free_threaded = python("3.14.2");
  free_threaded.is_free_threaded = true;
  EXPECT_FALSE(collects_late(free_threaded));
}

OwnerRun with_garbage() {
  OwnerRun run;
  run.add_process(trainer_record());
  run.add(tests::owner_record("garbage", "Node", OwnerKind::kGarbage),
          tests::entries_at([](std::size_t look) { return 10 * look; }));
  run.adjust = [](HeapFacts::OfProcess& of, std::size_t) {
    of.look.interpreter = python("3.12.1");
    of.look.interpreter.gc_enabled = false;
  };
  return run;
}

TEST(Interpreters, KnowTheGarbageOfTheLastLook) {
  Interpreters interpreters;
  for (const Tick& tick : with_garbage().ticks(3)) {
    interpreters.add(tick.heap);
  }

  const InterpreterState* const state = interpreters.of(trainer_record().key);
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->facts.python, "3.12.1");
  EXPECT_EQ(state->garbage_bytes, 20.0 * kOwnerMiB);
  EXPECT_EQ(interpreters.of({1, 2}), nullptr);
}

std::vector<std::string> ids_of(const std::vector<Advice>& advice) {
  std::vector<std::string> ids;
  ids.reserve(advice.size());
  for (const Advice& each : advice) {
    ids.emplace_back(each.id);
  }
  return ids;
}

TEST(OwnerAdvice, IsWhatTheInterpreterAndItsGarbageFit) {
  OwnerTrackBuilder builder;
  for (const Tick& tick : with_garbage().ticks(3)) {
    ASSERT_TRUE(builder.add(tick));
  }
  const OwnerRanking ranking = rank_owners(builder.owners(), {});

  EXPECT_EQ(ids_of(owner_advice(builder.owners(), ranking)),
            (std::vector<std::string>{"collector_off"}));

  OwnerTrackBuilder plain;
  for (const Tick& tick : tests::leaking_collator().ticks(3)) {
    ASSERT_TRUE(plain.add(tick));
  }
  EXPECT_TRUE(owner_advice(plain.owners(), rank_owners(plain.owners(), {})).empty());
}

// `tidemark track` of a run that has looks.
TEST(Interpreters, ArePartOfAWholeRun) {
  TrackBuilder builder;
  ASSERT_TRUE(builder.begin({}));
  for (Tick& tick : with_garbage().ticks(3)) {
    ProcessSample sample;
    sample.key = trainer_record().key;
    sample.rss_anon_bytes = 100 * kOwnerMiB;
    sample.rss_shmem_bytes = 0;
    tick.processes = {sample};
    ASSERT_TRUE(builder.add(tick));
  }
  ASSERT_TRUE(builder.end(60.0));

  const JudgedRun judged = judge_run(builder.take(), {});

  ASSERT_TRUE(judged.verdict);
  EXPECT_EQ(ids_of(judged.verdict->advice), (std::vector<std::string>{"collector_off"}));
}

}  // namespace
}  // namespace tidemark::tracker
