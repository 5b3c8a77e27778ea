// SPDX-License-Identifier: Apache-2.0
#include "tracker/ledgers/ledgers.h"

#include <gtest/gtest.h>

#include "tests/support/ledgers.h"
#include "tracker/causes/advice.h"
#include "tracker/causes/signature_facts.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/track_builder.h"

namespace tidemark::tracker {
namespace {

using tests::kLedgerMiB;
using tests::ledger_of;
using tests::ledger_row;
using tests::ledger_tick;

Ledgers ledgers_of(const std::vector<Tick>& ticks) {
  Ledgers ledgers;
  for (const Tick& tick : ticks) {
    ledgers.add(tick);
  }
  return ledgers;
}

TEST(Ledgers, KeepTheFirstAndTheLastOfEachProcess) {
  const Ledgers ledgers = ledgers_of(
      {ledger_tick(1.0, {ledger_of(10, 1.0, {ledger_row(LedgerKind::kAnonymous, 10)})}),
       ledger_tick(2.0, {ledger_of(10, 2.0, {ledger_row(LedgerKind::kAnonymous, 20)}),
                         ledger_of(11, 2.0, {ledger_row(LedgerKind::kFile, 5)})}),
       ledger_tick(3.0, {ledger_of(10, 3.0, {ledger_row(LedgerKind::kAnonymous, 40)})})});

  ASSERT_EQ(ledgers.processes().size(), 2U);
  const ProcessLedgers* const first = ledgers.of({10, 7});
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->looks, 3U);
  EXPECT_EQ(first->first.rss_bytes, 10 * kLedgerMiB);
  EXPECT_EQ(first->last.rss_bytes, 40 * kLedgerMiB);
  EXPECT_EQ(first->seconds(), 2.0);
  EXPECT_EQ(ledgers.of({10, 8}), nullptr);
}

TEST(Ledgers, AreBounded) {
  Ledgers ledgers;
  for (pid_t pid = 1; pid <= 1'100; ++pid) {
    ledgers.add(ledger_tick(0.0, {ledger_of(pid, 0.0, {})}));
  }

  EXPECT_EQ(ledgers.processes().size(), Ledgers::kMostProcesses);
  EXPECT_EQ(ledgers.left_out(), 1'100 - Ledgers::kMostProcesses);
}

TEST(LedgerSums, PutEqualRowsOfProcessesTogether) {
  const Ledgers ledgers =
      ledgers_of({ledger_tick(0.0, {ledger_of(10, 0.0,
                                              {ledger_row(LedgerKind::kAnonymous, 10),
                                               ledger_row(LedgerKind::kFile, 3, 1, "/a")}),
                                    ledger_of(11, 0.0, {ledger_row(LedgerKind::kAnonymous, 5)})}),
                  ledger_tick(9.0, {ledger_of(10, 9.0,
                                              {ledger_row(LedgerKind::kAnonymous, 14),
                                               ledger_row(LedgerKind::kFile, 2, 1, "/b")})})});

  const std::vector<LedgerChange> sums = add_up(ledgers.processes());

  ASSERT_EQ(sums.size(), 3U);
  EXPECT_EQ(sums[0].now.rss_bytes, 19 * kLedgerMiB);
  EXPECT_EQ(sums[0].rss_growth_bytes(), static_cast<std::int64_t>(4 * kLedgerMiB));
  EXPECT_EQ(sums[1].now.name, "/b");
  EXPECT_EQ(sums[2].now.name, "/a");
  EXPECT_EQ(sums[2].rss_growth_bytes(), -static_cast<std::int64_t>(3 * kLedgerMiB));
}

TEST(MemoryLedger, SaysWhatItsRowsDoNotExplain) {
  MemoryLedger ledger = ledger_of(1, 0.0, {ledger_row(LedgerKind::kAnonymous, 10)});
  ledger.rss_bytes += 5;
  ledger.footprint_bytes -= 7;

  EXPECT_EQ(ledger.unexplained_rss_bytes(), 5);
  EXPECT_EQ(ledger.unexplained_footprint_bytes(), -7);
}

TEST(LedgerFacts, TellWhatOfTheGrowthIsFree) {
  const Ledgers ledgers =
      ledgers_of({ledger_tick(0.0, {ledger_of(10, 0.0,
                                              {ledger_row(LedgerKind::kMallocInUse, 100),
                                               ledger_row(LedgerKind::kMallocFree, 10)})}),
                  ledger_tick(9.0, {ledger_of(10, 9.0,
                                              {ledger_row(LedgerKind::kMallocInUse, 120),
                                               ledger_row(LedgerKind::kMallocFree, 90)})})});

  const LedgerFacts facts = ledger_facts(ledgers, nullptr);

  EXPECT_DOUBLE_EQ(facts.free_share.value_or(0.0), 0.8);
  EXPECT_DOUBLE_EQ(facts.live_heap_bytes.value_or(0.0), 20.0 * kLedgerMiB);
}

TEST(LedgerFacts, OfOneLookTellNoGrowth) {
  MemoryLedger ledger = ledger_of(10, 0.0, {ledger_row(LedgerKind::kMallocFree, 10)});
  ledger.malloc_heaps = 33;
  const LedgerFacts facts = ledger_facts(ledgers_of({ledger_tick(0.0, {ledger})}), nullptr);

  EXPECT_EQ(facts.most_malloc_heaps, 33U);
  EXPECT_EQ(facts.free_share, std::nullopt);
  EXPECT_EQ(facts.huge_pages_bytes, std::nullopt);
}

TEST(LedgerFacts, BlameThePageCacheOnlyWhereItIsTheReason) {
  Tick tick = ledger_tick(0.0, {ledger_of(10, 0.0, {})});
  SystemSample& machine = tick.system.emplace();
  machine.cgroup_limit_bytes = 1000;
  machine.cgroup_charged_bytes = 950;
  machine.cgroup_cache_bytes = 600;
  const auto share = [&] { return ledger_facts(ledgers_of({tick}), nullptr).cgroup_charged_share; };

  EXPECT_DOUBLE_EQ(share().value_or(0.0), 0.95);
  machine.cgroup_cache_bytes = 100;  // the processes hold the rest
  EXPECT_EQ(share(), std::nullopt);
}

// The whole way from ledgers in a run to the advice.

std::vector<std::string_view> causes_of(const std::vector<Tick>& ticks) {
  TrackBuilder builder;
  EXPECT_TRUE(builder.begin({}));
  for (const Tick& tick : ticks) {
    EXPECT_TRUE(builder.add(tick));
  }
  const JudgedRun run = judge_run(builder.take(), {});
  std::vector<std::string_view> ids;
  for (const Advice& advice : run.verdict ? run.verdict->advice : std::vector<Advice>()) {
    ids.push_back(advice.id);
  }
  return ids;
}

bool has(const std::vector<std::string_view>& ids, std::string_view id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// A trainer that grows from 1 to 2 GiB, with a ledger at the start and at the end.
std::vector<Tick> growing_run(std::vector<LedgerRow> first, std::vector<LedgerRow> last,
                              std::uint64_t malloc_heaps = 0) {
  std::vector<Tick> ticks;
  for (int second = 0; second <= 600; ++second) {
    MemoryLedger ledger = ledger_of(
        10, second,
        {ledger_row(LedgerKind::kAnonymous, 1024 + static_cast<unsigned>(second) * 1024 / 600)});
    Tick tick = ledger_tick(second, {ledger});
    tick.ledgers.clear();
    if (second == 0) {
      ProcessRecord process;
      process.key = ledger.key;
      process.role = Role::kTrainer;
      process.comm = "python3";
      tick.new_processes.push_back(process);
    }
    if (second == 0 || second == 600) {
      tick.ledgers = {ledger_of(10, second, second == 0 ? first : last)};
      tick.ledgers[0].malloc_heaps = malloc_heaps;
    }
    ticks.push_back(tick);
  }
  return ticks;
}

TEST(LedgerCauses, FireFromTheLedgersOfARun) {
  using enum LedgerKind;
  const auto none =
      causes_of(growing_run({ledger_row(kAnonymous, 1024)}, {ledger_row(kAnonymous, 2048)}));
  EXPECT_FALSE(has(none, "malloc_arenas") || has(none, "freed_but_kept") ||
               has(none, "huge_pages"));

  EXPECT_TRUE(has(causes_of(growing_run({ledger_row(kMallocInUse, 1024)},
                                        {ledger_row(kMallocInUse, 2048)}, 30)),
                  "malloc_arenas"));
  EXPECT_TRUE(
      has(causes_of(growing_run({ledger_row(kMallocInUse, 1000), ledger_row(kMallocFree, 24)},
                                {ledger_row(kMallocInUse, 1100), ledger_row(kMallocFree, 948)})),
          "freed_but_kept"));
  LedgerRow huge = ledger_row(kMallocFree, 948);
  huge.huge_pages_bytes = 900 * kLedgerMiB;
  EXPECT_TRUE(
      has(causes_of(growing_run({ledger_row(kMallocInUse, 1100), ledger_row(kMallocFree, 24)},
                                {ledger_row(kMallocInUse, 1100), huge})),
          "huge_pages"));
}

TEST(LedgerCauses, FireForThePageCacheOfARecording) {
  std::vector<Tick> ticks = growing_run({ledger_row(LedgerKind::kAnonymous, 1024)}, {});
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    for (ProcessSample& sample : ticks[i].processes) {
      sample.rss_anon_bytes = 1024 * kLedgerMiB;
    }
    ticks[i].tree.footprint_bytes = 1024 * kLedgerMiB;
    SystemSample& machine = ticks[i].system.emplace();
    machine.cgroup_limit_bytes = 4096 * kLedgerMiB;
    machine.cgroup_charged_bytes = 4000 * kLedgerMiB;
    machine.cgroup_cache_bytes = 2900 * kLedgerMiB;
    ticks[i].ledgers.clear();
  }

  EXPECT_TRUE(has(causes_of(ticks), "page_cache_in_cgroup"));
}

}  // namespace
}  // namespace tidemark::tracker
