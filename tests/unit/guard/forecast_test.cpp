// SPDX-License-Identifier: Apache-2.0
#include "guard/forecast.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "common/units.h"

namespace tidemark::guard {
namespace {

constexpr ProcessKey kShell{10, 100};
constexpr ProcessKey kFirst{11, 101};
constexpr ProcessKey kSecond{12, 102};

// A script that starts trainers, looked at ten times a second; each step takes as long.
class GuardForecastTest : public testing::Test {
 protected:
  GuardForecastTest() {
    options_.warmup.steps = 20;
    (void)forecast_.begin({});
  }

  // `trainers`: who trains, and how many MiB each holds.
  void tick(const std::vector<std::pair<ProcessKey, double>>& trainers) {
    Tick tick;
    tick.t_s = 0.1 * static_cast<double>(ticks_++);
    Roster roster;
    roster.is_recognised = !trainers.empty();
    double all_mib = 1;
    add(tick, kShell, 1);
    roster.members.push_back(kShell);
    for (const auto& [key, mib] : trainers) {
      add(tick, key, mib);
      roster.members.push_back(key);
      roster.trainers.push_back(key);
      all_mib += mib;
    }
    if (!trainers.empty()) {
      tick.step = ticks_;
      tick.markers.push_back({tick.t_s, trainers.front().first, MarkerKind::kStep, *tick.step, ""});
    }
    const auto bytes = static_cast<std::uint64_t>(all_mib * static_cast<double>(kMiB));
    tick.tree = {static_cast<std::uint32_t>(tick.processes.size()), bytes, 0, bytes, false, {}, 0};
    (void)forecast_.add(tick);
    forecast_.update(tick, roster, [&](const ProcessKey& key) { return &record_of(key); });
  }

  void end(const ProcessKey& key) {
    ProcessRecord record = record_of(key);
    record.exited_s = 0.1 * static_cast<double>(ticks_);
    (void)forecast_.process_ended(record);
  }

  GuardForecast& forecast() { return forecast_; }

 private:
  void add(Tick& tick, const ProcessKey& key, double mib) {
    ProcessSample sample;
    sample.key = key;
    sample.rss_anon_bytes = static_cast<std::uint64_t>(mib * static_cast<double>(kMiB));
    sample.rss_bytes = sample.rss_anon_bytes;
    sample.rss_shmem_bytes = 0;
    sample.state = 'S';
    tick.processes.push_back(sample);
    if (!record_of(key).exited_s) {
      record_of(key).exited_s = 0.0;  // introduced
      tick.new_processes.push_back(record_of(key));
      tick.new_processes.back().exited_s.reset();
    }
  }
  ProcessRecord& record_of(const ProcessKey& key) {
    ProcessRecord& record = key == kShell ? shell_ : (key == kFirst ? first_ : second_);
    record.key = key;
    record.role = key == kShell ? Role::kWrapper : Role::kTrainer;
    return record;
  }

  int ticks_ = 0;
  tracker::JudgeOptions options_;
  ProcessRecord shell_;
  ProcessRecord first_;
  ProcessRecord second_;
  GuardForecast forecast_{options_};
};

TEST_F(GuardForecastTest, TellsTheRateOfALeak) {
  for (int i = 0; i < 100; ++i) {
    tick({{kFirst, 50.0 + i}});
  }
  ASSERT_TRUE(forecast().leak());
  EXPECT_EQ(forecast().verdict(), "leak");
  EXPECT_NEAR(forecast().leak()->low_bytes_per_s, 10.0 * kMiB, 1.0 * kMiB);
}

TEST_F(GuardForecastTest, TheLeakOfOneThatHasEndedIsOver) {
  for (int i = 0; i < 100; ++i) {
    tick({{kFirst, 50.0 + i}});
  }
  tick({});
  EXPECT_FALSE(forecast().leak()) << "at once";
  end(kFirst);
  for (int i = 0; i < 100; ++i) {
    tick({{kSecond, 50.0}});
    ASSERT_FALSE(forecast().leak()) << i;
  }
}

TEST_F(GuardForecastTest, TheNextTrainerIsJudgedByItself) {
  for (int i = 0; i < 100; ++i) {
    tick({{kFirst, 50.0}});
  }
  tick({{kSecond, 50.0}});
  end(kFirst);
  for (int i = 0; i < 100; ++i) {
    tick({{kSecond, 50.0 + 2.0 * i}});
  }
  ASSERT_TRUE(forecast().leak());
  EXPECT_NEAR(forecast().leak()->low_bytes_per_s, 20.0 * kMiB, 2.0 * kMiB);
}

TEST_F(GuardForecastTest, TheLeakOfOneOfTwoRanksEndsWithIt) {
  for (int i = 0; i < 100; ++i) {
    tick({{kSecond, 50.0}, {kFirst, 50.0 + 2.0 * i}});
  }
  ASSERT_TRUE(forecast().leak());
  tick({{kSecond, 50.0}});
  end(kFirst);
  for (int i = 0; i < 100; ++i) {
    tick({{kSecond, 50.0}});
    ASSERT_FALSE(forecast().leak()) << i;
  }
}

}  // namespace
}  // namespace tidemark::guard
