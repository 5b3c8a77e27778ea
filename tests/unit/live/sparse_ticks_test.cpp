// SPDX-License-Identifier: Apache-2.0
#include "live/sparse_ticks.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::live {
namespace {

using testing::ElementsAre;

Tick tick_of(std::size_t processes, double t_s) {
  Tick tick;
  tick.t_s = t_s;
  tick.processes.resize(processes);
  tick.events.push_back({t_s, EventKind::kMark, {}, std::to_string(static_cast<int>(t_s))});
  tick.markers.push_back({t_s, {}, MarkerKind::kStep, static_cast<std::int64_t>(t_s), {}});
  tick.losses.push_back({0, LossKind::kStepsLost, 1});
  tick.new_processes.emplace_back().key.pid = static_cast<pid_t>(t_s) + 1;
  return tick;
}

std::vector<Tick> kept_of(std::size_t processes, int ticks) {
  SparseTicks sparse;
  std::vector<Tick> kept;
  for (int t = 0; t < ticks; ++t) {
    if (auto tick = sparse.add(tick_of(processes, t))) {
      kept.push_back(*std::move(tick));
    }
  }
  if (auto tick = sparse.take_last()) {
    kept.push_back(*std::move(tick));
  }
  return kept;
}

std::vector<double> times_of(const std::vector<Tick>& ticks) {
  std::vector<double> times;
  for (const Tick& tick : ticks) {
    times.push_back(tick.t_s);
  }
  return times;
}

TEST(SparseTicks, HaveEveryTickOfAUsualTree) {
  EXPECT_THAT(times_of(kept_of(255, 4)), ElementsAre(0.0, 1.0, 2.0, 3.0));
}

TEST(SparseTicks, OfALargeTreeAreFewerWithTheFirstAndTheLast) {
  EXPECT_THAT(times_of(kept_of(1000, 10)), ElementsAre(0.0, 4.0, 8.0, 9.0));
}

TEST(SparseTicks, LoseNothingThatHappened) {
  std::vector<std::string> events;
  std::vector<pid_t> started;
  std::size_t markers = 0;
  std::size_t losses = 0;
  for (const Tick& tick : kept_of(1000, 6)) {
    for (const EventRecord& event : tick.events) {
      events.push_back(event.detail);
    }
    for (const ProcessRecord& process : tick.new_processes) {
      started.push_back(process.key.pid);
    }
    markers += tick.markers.size();
    losses += tick.losses.size();
  }

  EXPECT_THAT(events, ElementsAre("0", "1", "2", "3", "4", "5"));
  EXPECT_THAT(started, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(markers, 6U);
  EXPECT_EQ(losses, 6U);
}

TEST(SparseTicks, HaveEveryTickWithCallStacks) {
  SparseTicks sparse;
  sparse.add(tick_of(1000, 0.0));
  Tick tick = tick_of(1000, 1.0);
  tick.allocations.sites.emplace_back();

  EXPECT_TRUE(sparse.add(std::move(tick)));
}

TEST(SparseTicks, HaveEveryTickWithALookAtTheHeap) {
  SparseTicks sparse;
  sparse.add(tick_of(1000, 0.0));
  Tick tick = tick_of(1000, 1.0);
  tick.heap.looks.emplace_back();

  EXPECT_TRUE(sparse.add(std::move(tick)));
}

TEST(SparseTicks, HaveEveryTickWithALedger) {
  SparseTicks sparse;
  sparse.add(tick_of(1000, 0.0));
  Tick tick = tick_of(1000, 1.0);
  tick.ledgers.emplace_back();

  EXPECT_TRUE(sparse.add(std::move(tick)));
}

}  // namespace
}  // namespace tidemark::live
