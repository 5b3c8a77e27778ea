// SPDX-License-Identifier: Apache-2.0
// What a look at a tree could not find out is counted, and the rest of the look goes on.
#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>

#include "common/units.h"
#include "monitor/sampler.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_proc.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

using tests::FakeProcess;

constexpr std::uint64_t kKibPerMib = 1024;

class SamplerLosses : public testing::Test {
 protected:
  void start() {
    SamplerOptions options;
    options.roots.keys = {{10, 100}};
    options.proc_root = proc.root();
    options.shm_root = shm.path();
    auto started = Sampler::start(options, proc.source(), clock);
    ASSERT_TRUE(started);
    sampler = *std::move(started);
  }
  Tick sample() {
    clock.advance_s(1.0);
    return sampler->sample(to_seconds(clock.now_ns));
  }
  static std::uint64_t count(const Tick& tick, std::string_view what) {
    std::uint64_t sum = 0;
    for (const LossRecord& loss : tick.losses) {
      sum += loss.what.text() == what ? loss.count : 0;
    }
    return sum;
  }
  static FakeProcess trainer(std::uint64_t mib = 400) {
    FakeProcess process;
    process.pid = 10;
    process.anon_kib = process.pss_anon_kib = process.private_dirty_kib = mib * kKibPerMib;
    return process;
  }

  tests::FakeClock clock;
  tests::FakeProc proc;
  tests::TempTree shm;  // in the place of /dev/shm
  std::unique_ptr<Sampler> sampler;
};

TEST_F(SamplerLosses, CountAProcessWhoseSplitIsUnknownOnce) {
  FakeProcess old_kernel = trainer();
  old_kernel.split_unknown = true;
  proc.put(old_kernel);
  start();

  const Tick first = sample();
  const Tick second = sample();

  EXPECT_EQ(count(first, "split_unknown"), 1U);
  EXPECT_EQ(count(second, "split_unknown"), 0U);
  EXPECT_EQ(first.tree.footprint_bytes, 400 * kMiB) << "rather too much than nothing";
}

TEST_F(SamplerLosses, CountAProcessThatIsTooLargeToReadItsShares) {
  proc.put(trainer(200 * 1024));
  start();

  const Tick tick = sample();

  EXPECT_EQ(count(tick, "pss_too_large"), 1U);
  EXPECT_EQ(tick.processes.at(0).pss_bytes, std::nullopt);
  EXPECT_EQ(tick.tree.footprint_bytes, 200 * kGiB);
}

TEST_F(SamplerLosses, CountAProcessTableThatCannotBeRead) {
  proc.put(trainer());
  start();
  proc.source().is_unreadable = true;

  EXPECT_EQ(count(sample(), "process_table_unreadable"), 1U);
  proc.source().is_unreadable = false;
  clock.advance_s(1.0);
  const Tick later = sample();

  EXPECT_EQ(count(later, "process_table_unreadable"), 0U);
  EXPECT_EQ(later.tree.processes, 1U);
}

TEST_F(SamplerLosses, CountAStatusThatCannotBeReadAndKeepWhatWasKnown) {
  proc.put(trainer());
  start();
  sample();
  FakeProcess damaged = trainer(500);
  damaged.status_malformed = true;
  proc.put(damaged);

  const Tick tick = sample();

  EXPECT_EQ(count(tick, "status_unreadable"), 1U);
  EXPECT_EQ(tick.tree.rss_bytes, 400 * kMiB);
}

}  // namespace
}  // namespace tidemark::monitor
