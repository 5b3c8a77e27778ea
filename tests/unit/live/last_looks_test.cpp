// SPDX-License-Identifier: Apache-2.0
#include "live/last_looks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tidemark::live {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kLookGiB = std::uint64_t{1} << 30U;
constexpr std::int64_t kGB = 1'000'000'000;

LimitSight sight(std::uint64_t held_gb, std::int64_t spare_gb,
                 std::optional<double> seconds = std::nullopt) {
  return {held_gb * static_cast<std::uint64_t>(kGB), spare_gb * kGB, seconds};
}

TEST(LastLookPlan, BeginsWhenWhatTheJobHoldsFitsOnceMoreAtMost) {
  const LastLookPlan plan;

  EXPECT_FALSE(plan.is_due(sight(10, 22)));
  EXPECT_FALSE(plan.is_due(sight(15, 17)));
  EXPECT_TRUE(plan.is_due(sight(16, 16)));
  EXPECT_TRUE(plan.is_due(sight(28, 4)));
  EXPECT_TRUE(plan.is_due(sight(5, 5))) << "others hold the rest";
}

TEST(LastLookPlan, GoesOnEachTimeHalfOfWhatWasLeftIsUsedUp) {
  LastLookPlan plan;
  std::vector<std::int64_t> at;
  for (std::int64_t spare = 32; spare >= -4; --spare) {
    const LimitSight seen = sight(static_cast<std::uint64_t>(32 - spare), spare);
    if (plan.is_due(seen)) {
      plan.begun(seen);
      at.push_back(spare);
    }
  }
  EXPECT_EQ(at, (std::vector<std::int64_t>{16, 8, 4, 2, 1}));

  // A spike that comes again is no news.
  EXPECT_FALSE(plan.is_due(sight(28, 4)));
  plan.reset();
  EXPECT_TRUE(plan.is_due(sight(28, 4)));
}

TEST(LastLookPlan, CountsTheTimeOfALeakThatIsFast) {
  LastLookPlan plan;
  EXPECT_FALSE(plan.is_due(sight(5, 27, 900.0)));
  ASSERT_TRUE(plan.is_due(sight(6, 26, 500.0)));
  plan.begun(sight(6, 26, 500.0));
  EXPECT_FALSE(plan.is_due(sight(10, 22, 300.0)));
  EXPECT_TRUE(plan.is_due(sight(12, 20, 250.0)));
}

TEST(LastLookBudget, OnlyReadsAndTakesLittle) {
  const heap::HeapOptions budget = last_look_budget(100);

  EXPECT_TRUE(budget.only_reads);
  EXPECT_LE(budget.most_seconds, 5.0);
  EXPECT_EQ(budget.most_memory_bytes, 100U);
}

// A job of 32 GiB of memory, and looks at it that are made up.
class LastLooksTest : public testing::Test {
 protected:
  static constexpr ProcessKey kTrainerKey{4711, 1};

  MakeLook make() {
    return [this](const ProcessKey& key, const std::function<bool()>& is_cancelled) -> LookAtHeap {
      return [this, key, is_cancelled](double t_s, const heap::HeapExports&) -> Result<HeapFacts> {
        const int number = begun++;
        while (waits && !is_cancelled()) {
          std::this_thread::yield();
        }
        return found(key, t_s, static_cast<std::uint64_t>(number));
      };
    };
  }
  std::function<Result<HeapFacts>(HeapFacts facts)> change = [](HeapFacts facts) {
    return Result<HeapFacts>(std::move(facts));
  };

  Result<HeapFacts> found(const ProcessKey& key, double t_s, std::uint64_t number) const {
    HeapFacts facts;
    HeapFacts::OfProcess& of = facts.looks.emplace_back();
    of.look.key = key;
    of.look.t_s = t_s;
    of.look.objects = 1000;
    of.look.new_bytes = number * kLookGiB;
    if (number == 0) {
      OwnerRecord owner;
      owner.owner = 1;
      owner.key = key;
      owner.path = "__main__.cache";
      owner.type = "dict";
      facts.owners.push_back(owner);
    }
    OwnerSample sample;
    sample.owner = 1;
    sample.grown_bytes = of.look.new_bytes;
    of.owners.push_back(sample);
    return change(std::move(facts));
  }

  Tick tick(double t_s, std::uint64_t held_gib) const {
    Tick tick;
    tick.t_s = t_s;
    ProcessSample sample;
    sample.key = job;
    sample.rss_anon_bytes = held_gib * kLookGiB;
    sample.rss_shmem_bytes = 0;
    sample.state = 'R';
    tick.processes = {sample};
    tick.tree.footprint_bytes = held_gib * kLookGiB;
    SystemSample system;
    system.total_bytes = 32 * kLookGiB;
    system.available_bytes = (32 - held_gib) * kLookGiB;
    tick.system = system;
    ProcessRecord process;
    process.key = job;
    process.role = Role::kTrainer;
    process.comm = "python3";
    tick.new_processes = {process};
    return tick;
  }
  // The tick at which a look was begun, and those after it until it is over. Returns what was
  // found.
  HeapFacts tick_until_found(LastLooks& looks, double t_s, std::uint64_t held_gib) const {
    HeapFacts all;
    while (all.empty()) {
      Tick next = tick(t_s, held_gib);
      looks.add_to_tick(next);
      EXPECT_TRUE(looks.sink().add(next));
      all = next.heap;
      t_s += 0.001;
      std::this_thread::yield();
    }
    return all;
  }

  ProcessKey job = kTrainerKey;
  std::atomic<int> begun = 0;
  std::atomic<bool> waits = false;
  LastLookOptions options;
};

TEST_F(LastLooksTest, LooksWhenALimitComesNearAndNamesWhoHoldsTheMemory) {
  LastLooks looks(options, make());
  Tick far = tick(1.0, 8);
  looks.add_to_tick(far);
  EXPECT_TRUE(far.heap.empty());

  const HeapFacts first = tick_until_found(looks, 2.0, 16);
  const HeapFacts second = tick_until_found(looks, 60.0, 25);

  ASSERT_EQ(first.looks.size(), 1U);
  EXPECT_EQ(first.looks[0].look.key, kTrainerKey);
  EXPECT_EQ(first.looks[0].look.footprint_bytes, 16 * kLookGiB);
  EXPECT_EQ(second.looks.size(), 1U);
  EXPECT_EQ(begun, 2);
  Tick stop = tick(64.0, 31);
  EXPECT_TRUE(looks.sink().add(stop));
  EXPECT_EQ(looks.held_by(), "held 4.0 s before by __main__.cache (+1.00 GiB)");
  EXPECT_THAT(looks.report(), HasSubstr("+1.00 GiB  __main__.cache  dict"));
  EXPECT_EQ(looks.take_note(), std::nullopt);
}

TEST_F(LastLooksTest, CountsWhatIsKeptFreeAndALimitOfTheUser) {
  options.limit_bytes = 10 * kLookGiB;
  options.keep_free = [](std::uint64_t limit_bytes) { return limit_bytes / 5; };
  LastLooks looks(options, make());
  Tick far = tick(1.0, 3);
  looks.add_to_tick(far);
  EXPECT_FALSE(looks.end());
  EXPECT_EQ(begun, 0);

  LastLooks near(options, make());
  tick_until_found(near, 1.0, 4);  // 10 less 2 that are kept free less 4
  EXPECT_EQ(begun, 1);
}

TEST_F(LastLooksTest, TakesNoneWhereMemoryIsTooShortForIt) {
  LastLooks looks(options, make());
  Tick late = tick(1.0, 31);
  late.system->available_bytes = std::uint64_t{100} << 20U;
  looks.add_to_tick(late);
  looks.end();
  EXPECT_EQ(begun, 0);
}

TEST_F(LastLooksTest, TakesNoneWhereItIsSwitchedOff) {
  options.is_on = false;
  LastLooks looks(options, make());
  Tick near = tick(1.0, 20);
  looks.add_to_tick(near);
  looks.end();
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(looks.held_by(), "");
  EXPECT_EQ(looks.report(), "");
}

TEST_F(LastLooksTest, SaysOnceWhyThereIsNone) {
  change = [](HeapFacts facts) {
    facts.looks[0].look.objects = 0;
    facts.looks[0].look.problem = "there is no Python\x1b in it";
    facts.owners.clear();
    facts.looks[0].owners.clear();
    return Result<HeapFacts>(std::move(facts));
  };
  LastLooks looks(options, make());
  tick_until_found(looks, 1.0, 16);
  EXPECT_EQ(looks.take_note(),
            "note: no look at what holds the memory of pid 4711: there is no "
            "Python\\x1b in it");

  for (const std::uint64_t held : {25U, 29U, 31U}) {
    Tick later = tick(100.0 + static_cast<double>(held), held);
    looks.add_to_tick(later);
    EXPECT_EQ(looks.take_note(), std::nullopt);
  }
  EXPECT_EQ(begun, 1) << "what has no Python now will have none";
  EXPECT_EQ(looks.held_by(), "");
}

TEST_F(LastLooksTest, SaysWhyItMayNotLook) {
  change = [](const HeapFacts&) {
    return Result<HeapFacts>(Error{Errc::kPermission, "permission denied"});
  };
  LastLooks looks(options, make());
  std::optional<std::string> note;
  while (!note) {
    Tick near = tick(1.0, 16);
    looks.add_to_tick(near);
    EXPECT_TRUE(near.heap.empty());
    note = looks.take_note();
    std::this_thread::yield();
  }
  EXPECT_THAT(*note, HasSubstr("permission denied"));
}

TEST_F(LastLooksTest, SaysOnceThatALookWasCutShort) {
  change = [](HeapFacts facts) {
    facts.looks[0].look.is_partial = true;
    return Result<HeapFacts>(std::move(facts));
  };
  LastLooks looks(options, make());
  tick_until_found(looks, 1.0, 16);
  EXPECT_THAT(looks.take_note().value_or(""),
              HasSubstr("not all of its objects were reached in 5 s and 256 MiB"));
  tick_until_found(looks, 9.0, 25);
  EXPECT_EQ(looks.take_note(), std::nullopt);
  EXPECT_EQ(begun, 2);
}

TEST_F(LastLooksTest, KeepsTheirBudgetBelowAPartOfWhatIsLeft) {
  change = [](HeapFacts facts) {
    facts.looks[0].look.is_partial = true;
    return Result<HeapFacts>(std::move(facts));
  };
  LastLooks looks(options, make());
  Tick near = tick(1.0, 16);
  near.system->available_bytes = std::uint64_t{800} << 20U;
  looks.add_to_tick(near);
  std::optional<std::string> note;
  while (!note) {
    Tick next = tick(1.0, 16);
    looks.add_to_tick(next);
    note = looks.take_note();
    std::this_thread::yield();
  }
  EXPECT_THAT(*note, HasSubstr("in 5 s and 100 MiB"));
}

TEST_F(LastLooksTest, GivesUpWithoutWaitingWhenTheJobIsStopped) {
  waits = true;
  LastLooks looks(options, make());
  Tick near = tick(1.0, 20);
  looks.add_to_tick(near);
  while (begun == 0) {
    std::this_thread::yield();
  }

  looks.give_up();
  for (double t_s = 2.0; t_s < 5.0; t_s += 1.0) {
    Tick later = tick(t_s, 31);
    looks.add_to_tick(later);
    EXPECT_TRUE(later.heap.empty());
  }
  EXPECT_FALSE(looks.end());
  EXPECT_EQ(begun, 1);
}

TEST_F(LastLooksTest, LooksAtTheNextJobAfterAStop) {
  LastLooks looks(options, make());
  tick_until_found(looks, 1.0, 16);
  looks.give_up();
  looks.begin_again();

  Tick same = tick(5.0, 30);
  looks.add_to_tick(same);
  EXPECT_EQ(begun, 1) << "its owners have numbers already";
  job = {4712, 2};
  begun = 0;
  EXPECT_EQ(tick_until_found(looks, 9.0, 20).looks[0].look.key, job);
}

TEST_F(LastLooksTest, BeginsAnewWithAnotherProcess) {
  LastLooks looks(options, make());
  tick_until_found(looks, 1.0, 28);
  job = {4713, 3};
  begun = 0;
  tick_until_found(looks, 9.0, 20);  // farther away than the last look at the other one
  EXPECT_EQ(begun, 1);
}

TEST_F(LastLooksTest, HandsOverWhatWasFoundAfterTheLastTick) {
  LastLooks looks(options, make());
  Tick near = tick(1.0, 20);
  looks.add_to_tick(near);
  while (begun == 0) {
    std::this_thread::yield();
  }
  // Whether it was over in time is chance; what was handed over has to be there.
  const bool has_rest = looks.end();
  Tick last = tick(2.0, 20);
  looks.add_to_tick(last);
  EXPECT_EQ(!last.heap.empty(), has_rest);
}

}  // namespace
}  // namespace tidemark::live
