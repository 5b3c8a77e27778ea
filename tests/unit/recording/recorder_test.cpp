// SPDX-License-Identifier: Apache-2.0
#include "recording/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "recording/run_reader.h"
#include "recording/sqlite.h"
#include "tests/support/memory_sink.h"
#include "tests/support/record_text.h"
#include "tests/support/sample_run.h"
#include "tests/support/temp_tree.h"

namespace tidemark::recording {
namespace {

using tests::MemorySink;
using tests::plain_tick;
using tests::TempTree;
using tests::text_of;

std::unique_ptr<RunWriter> make_writer(const std::string& path, RunWriterOptions options = {}) {
  auto writer = RunWriter::create(path, options);
  EXPECT_TRUE(writer);
  return std::move(*writer);
}

MemorySink read_back(const std::string& path) {
  MemorySink sink;
  auto reader = RunReader::open(path);
  EXPECT_TRUE(reader);
  EXPECT_TRUE((*reader)->read(sink));
  return sink;
}

// Holds the write lock of the file, as a user's sqlite3 shell can: the recorder's disk "hangs".
class Blocker {
 public:
  explicit Blocker(const std::string& path)
      : database_(*Database::open(path, Database::Mode::kReadWrite)) {
    EXPECT_TRUE(database_.execute("BEGIN IMMEDIATE"));
  }
  void release() { EXPECT_TRUE(database_.execute("ROLLBACK")); }

 private:
  Database database_;
};

TEST(Recorder, WritesEveryTickInOrder) {
  const TempTree dir;
  Recorder recorder(make_writer(dir.path("run")));
  ASSERT_TRUE(recorder.begin(tests::full_run_info()));
  for (std::uint64_t n = 0; n < 50; ++n) {
    ASSERT_TRUE(recorder.add(plain_tick(n)));
  }
  ProcessRecord dead = tests::trainer_record();
  dead.exited_s = 49.5;
  ASSERT_TRUE(recorder.process_ended(dead));
  ASSERT_TRUE(recorder.end(50.0));

  const MemorySink run = read_back(dir.path("run"));

  ASSERT_EQ(run.ticks.size(), 50U);
  for (std::uint64_t n = 0; n < 50; ++n) {
    EXPECT_EQ(text_of(run.ticks[n]), text_of(plain_tick(n)));
  }
  ASSERT_EQ(run.ended.size(), 1U);
  EXPECT_EQ(text_of(run.ended[0]), text_of(dead));
  EXPECT_EQ(recorder.stats().ticks_written, 50U);
  EXPECT_EQ(recorder.stats().ticks_dropped, 0U);
  EXPECT_GT(recorder.stats().max_write_late_s, 0.0);
  EXPECT_TRUE(recorder.is_one_file());
}

TEST(Recorder, StoresHowLateEachTickWasWritten) {
  const TempTree dir;
  Recorder recorder(make_writer(dir.path("run")));
  ASSERT_TRUE(recorder.begin(tests::full_run_info()));
  ASSERT_TRUE(recorder.add(plain_tick(0)));
  ASSERT_TRUE(recorder.add(plain_tick(1)));
  ASSERT_TRUE(recorder.end(1.0));

  auto database = Database::open(dir.path("run"), Database::Mode::kReadOnly);

  ASSERT_TRUE(database);
  EXPECT_EQ(*database->query_integer("SELECT count(*) FROM ticks WHERE write_late_s > 0"), 2);
}

TEST(Recorder, NeverWaitsForTheDiskAndCountsWhatItDrops) {
  const TempTree dir;
  Recorder recorder(make_writer(dir.path("run")), {.max_ticks = 4});
  ASSERT_TRUE(recorder.begin(tests::full_run_info()));
  Blocker blocker(dir.path("run"));
  for (std::uint64_t n = 0; n < 20; ++n) {
    Tick tick = plain_tick(n);
    tick.markers = {{tick.t_s, {}, MarkerKind::kStep, static_cast<std::int64_t>(n), ""}};
    ASSERT_TRUE(recorder.add(tick));  // returns at once: nothing is written
  }
  const RecorderStats stats = recorder.stats();
  EXPECT_EQ(stats.ticks_written, 0U);
  EXPECT_GE(stats.ticks_dropped, 15U);  // 4 queued, and one that the writer holds
  blocker.release();
  ASSERT_TRUE(recorder.end(20.0));

  const MemorySink run = read_back(dir.path("run"));

  std::uint64_t lost = 0;
  std::vector<std::int64_t> steps;
  for (const Tick& tick : run.ticks) {
    for (const LossRecord& loss : tick.losses) {
      EXPECT_EQ(loss.what.text(), "ticks_dropped");
      lost += loss.count;
    }
    for (const MarkerRecord& marker : tick.markers) {
      steps.push_back(marker.value);
    }
  }
  EXPECT_EQ(run.ticks.size() + lost, 20U);
  EXPECT_EQ(recorder.stats().ticks_dropped, lost);
  EXPECT_EQ(run.ticks.back().t_s, 19.0);  // the last state is kept
  std::vector<std::int64_t> all_steps(20);
  for (std::size_t n = 0; n < all_steps.size(); ++n) {
    all_steps[n] = static_cast<std::int64_t>(n);
  }
  EXPECT_EQ(steps, all_steps);  // facts happen once: none is lost with its tick
}

TEST(Recorder, BoundsItsQueueInBytesToo) {
  const TempTree dir;
  Recorder recorder(make_writer(dir.path("run")), {.max_ticks = 1000, .max_bytes = 4'000});
  ASSERT_TRUE(recorder.begin(tests::full_run_info()));
  Blocker blocker(dir.path("run"));
  for (std::uint64_t n = 0; n < 50; ++n) {
    ASSERT_TRUE(recorder.add(plain_tick(n)));
  }

  EXPECT_GE(recorder.stats().ticks_dropped, 30U);

  blocker.release();
  EXPECT_TRUE(recorder.end(50.0));
}

TEST(Recorder, ReportsTheErrorOfTheWriterOnceAndGoesOn) {
  const TempTree dir;
  Recorder recorder(make_writer(dir.path("run")));
  ASSERT_TRUE(recorder.begin(tests::full_run_info()));
  dir.remove("run");
  std::optional<Error> error;
  std::uint64_t added = 0;
  while (!error) {
    ASSERT_TRUE(recorder.add(plain_tick(added++)));
    error = recorder.take_error();
  }

  EXPECT_EQ(error->code, Errc::kGone);
  EXPECT_EQ(recorder.take_error(), std::nullopt);
  EXPECT_TRUE(recorder.add(plain_tick(added++)));
  EXPECT_EQ(recorder.stats().ticks_dropped, added);
}

TEST(Recorder, EndSaysThatTheRunIsIncompleteEvenIfTheErrorWasTaken) {
  const TempTree dir;
  Recorder recorder(make_writer(dir.path("run")));
  ASSERT_TRUE(recorder.begin(tests::full_run_info()));
  dir.remove("run");
  for (std::uint64_t n = 0; !recorder.take_error(); ++n) {
    ASSERT_TRUE(recorder.add(plain_tick(n)));
  }

  const Status ended = recorder.end(1.0);

  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::kGone);
}

TEST(Recorder, GivesTheErrorAtTheEndWhenNobodyAskedBefore) {
  const TempTree dir;
  Recorder recorder(make_writer(dir.path("run"), {.busy_timeout_ms = 1}));
  ASSERT_TRUE(recorder.begin(tests::full_run_info()));
  const Blocker blocker(dir.path("run"));
  ASSERT_TRUE(recorder.add(plain_tick(0)));

  const Status status = recorder.end(1.0);

  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().what, dir.path("run") + ": another program holds a lock on it");
}

TEST(Recorder, WritesItsQueueWhenItIsDestroyedWithoutEnd) {
  const TempTree dir;
  {
    Recorder recorder(make_writer(dir.path("run")));
    ASSERT_TRUE(recorder.begin(tests::full_run_info()));
    ASSERT_TRUE(recorder.add(plain_tick(0)));
  }

  const MemorySink run = read_back(dir.path("run"));

  EXPECT_EQ(run.ticks.size(), 1U);
  EXPECT_FALSE(run.info.ended_cleanly);
}

TEST(PendingFacts, CountsFactsThatFindNoRoom) {
  PendingFacts facts(/*max_bytes=*/500);
  Tick dropped = tests::full_tick();
  facts.add_dropped(dropped);
  facts.add_dropped(dropped);
  Tick next = tests::empty_tick(9.0);

  facts.move_into(next);

  std::uint64_t ticks_dropped = 0;
  std::uint64_t facts_dropped = 0;
  for (const LossRecord& loss : next.losses) {
    ticks_dropped += loss.what == LossKind::kTicksDropped ? loss.count : 0;
    facts_dropped += loss.what == LossKind::kFactsDropped ? loss.count : 0;
  }
  EXPECT_EQ(ticks_dropped, 2U);
  // 2 x (2 processes, 2 markers, 1 event, 1 loss; 2 modules, 2 frames, 2 sites, 2 samples of sites,
  // ages of 1 site, 2 traces, 1 account, segments in /dev/shm)
  EXPECT_EQ(facts_dropped, 38U);
  EXPECT_TRUE(next.events.empty());
}

TEST(PendingFacts, PutsFactsOfDroppedTicksBeforeThoseOfTheNext) {
  PendingFacts facts(/*max_bytes=*/1 << 20);
  Tick dropped = tests::empty_tick(1.0);
  dropped.events = {{1.0, EventKind::kGap, {}, "first"}};
  facts.add_dropped(dropped);
  Tick next = tests::empty_tick(2.0);
  next.events = {{2.0, EventKind::kGap, {}, "second"}};

  facts.move_into(next);

  ASSERT_EQ(next.events.size(), 2U);
  EXPECT_EQ(next.events[0].detail, "first");
  EXPECT_EQ(next.events[1].detail, "second");
  EXPECT_EQ(facts.take_last_dropped(), std::nullopt);
}

TEST(PendingFacts, KeepsTheLastSampleOfASiteThatHasNotChangedSince) {
  PendingFacts facts(/*max_bytes=*/1 << 20);
  Tick dropped = tests::empty_tick(1.0);
  dropped.allocations.sites = {{1, {101, 5}, AllocationKind::kHeap, false, {1}}};
  dropped.allocations.samples = {tests::site_sample(1, 100), tests::site_sample(2, 200)};
  dropped.allocations.ages = {{1, {{false, 0.0, 100}}}};
  facts.add_dropped(dropped);
  Tick next = tests::empty_tick(2.0);
  next.allocations.samples = {tests::site_sample(2, 250)};

  facts.move_into(next);

  ASSERT_EQ(next.allocations.samples.size(), 2U);
  EXPECT_EQ(next.allocations.samples[0].live_bytes, 100U);
  EXPECT_EQ(next.allocations.samples[1].live_bytes, 250U);
  EXPECT_EQ(next.allocations.sites.size(), 1U);
  EXPECT_EQ(next.allocations.ages.size(), 1U);
}

TEST(PendingFacts, KeepsTheLastLookAtTheHeapOfEachProcess) {
  PendingFacts facts(/*max_bytes=*/1 << 20);
  Tick dropped = tests::empty_tick(1.0);
  dropped.heap.owners.emplace_back().path = "__main__.cache";
  for (const pid_t pid : {101, 102}) {
    dropped.heap.looks.emplace_back().look.key = {pid, 5};
  }
  facts.add_dropped(dropped);
  Tick next = tests::empty_tick(2.0);
  HeapLook& later = next.heap.looks.emplace_back().look;
  later.key = {102, 5};
  later.t_s = 2.0;

  facts.move_into(next);

  ASSERT_EQ(next.heap.owners.size(), 1U);
  ASSERT_EQ(next.heap.looks.size(), 2U);
  EXPECT_EQ(next.heap.looks[0].look.key.pid, 101);
  EXPECT_EQ(next.heap.looks[1].look.t_s, 2.0);
}

TEST(PendingFacts, KeepsInterventions) {
  PendingFacts facts(/*max_bytes=*/1 << 20);
  Tick dropped = tests::empty_tick(1.0);
  dropped.interventions.emplace_back().kind = InterventionKind::kGc;
  facts.add_dropped(dropped);
  Tick next = tests::empty_tick(2.0);
  next.interventions.emplace_back().kind = InterventionKind::kCuda;

  facts.move_into(next);

  ASSERT_EQ(next.interventions.size(), 2U);
  EXPECT_EQ(next.interventions[0].kind, InterventionKind::kGc);
}

TEST(PendingFacts, KeepsTheLastLedgerOfEachProcess) {
  PendingFacts facts(/*max_bytes=*/1 << 20);
  Tick dropped = tests::empty_tick(1.0);
  for (const pid_t pid : {101, 102}) {
    dropped.ledgers.emplace_back().key = {pid, 5};
  }
  facts.add_dropped(dropped);
  Tick next = tests::empty_tick(2.0);
  MemoryLedger& later = next.ledgers.emplace_back();
  later.key = {102, 5};
  later.t_s = 2.0;

  facts.move_into(next);

  ASSERT_EQ(next.ledgers.size(), 2U);
  EXPECT_EQ(next.ledgers[0].key.pid, 101);
  EXPECT_EQ(next.ledgers[1].t_s, 2.0);
}

TEST(PendingFacts, CountsLooksAtTheHeapThatFindNoRoom) {
  PendingFacts facts(/*max_bytes=*/1024);
  Tick dropped = tests::empty_tick(1.0);
  HeapFacts::OfProcess& of = dropped.heap.looks.emplace_back();
  of.types.assign(100, {"dict", 1, 1});
  dropped.heap.owners.resize(3);
  facts.add_dropped(dropped);
  Tick next = tests::empty_tick(2.0);

  facts.move_into(next);

  EXPECT_TRUE(next.heap.empty());
  ASSERT_EQ(next.losses.size(), 2U);
  EXPECT_EQ(next.losses[1].what, LossName(LossKind::kFactsDropped));
  EXPECT_EQ(next.losses[1].count, 4U);
}

}  // namespace
}  // namespace tidemark::recording
