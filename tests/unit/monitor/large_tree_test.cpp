// SPDX-License-Identifier: Apache-2.0
// The sampler on trees that are too large to read everybody's status at every tick.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "common/io.h"
#include "monitor/sampler.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_proc.h"

namespace tidemark::monitor {
namespace {

using tests::FakeProc;
using tests::FakeProcess;

constexpr std::uint64_t kKib = 1024;
constexpr pid_t kRoot = 1000;
constexpr int kPerTick = 4;
// Of six processes the first tick reads the status of the first four, the second that of the other
// two and of the first two: this one has no turn in the second.
constexpr int kProcesses = 6;
constexpr pid_t kWithoutTurn = kRoot + 3;
constexpr ProcessKey kKeyWithoutTurn{kWithoutTurn, 200};

FakeProcess member(pid_t pid) {
  FakeProcess process;
  process.pid = pid;
  process.ppid = pid == kRoot ? 1 : kRoot;
  process.start_ticks = pid == kRoot ? 100 : 200;
  process.stack_start = static_cast<std::uint64_t>(pid);  // started by exec: shares nothing
  process.anon_kib = 8;
  process.file_kib = 4;
  process.pss_anon_kib = process.private_dirty_kib = process.anon_kib;
  return process;
}

class LargeTree : public testing::Test {
 protected:
  void start(int processes, PssMode pss = PssMode::kOff) {
    for (pid_t pid = kRoot; pid < kRoot + processes; ++pid) {
      proc.put(member(pid));
    }
    SamplerOptions options;
    options.roots.keys = {{kRoot, 100}};
    options.pss = pss;
    options.statuses_per_tick = kPerTick;
    options.proc_root = proc.root();
    auto started = Sampler::start(options, proc.source(), clock);
    ASSERT_TRUE(started);
    sampler = *std::move(started);
    ASSERT_EQ(sample().processes.size(), static_cast<std::size_t>(processes));
  }
  Tick sample() {
    clock.advance_s(1.0);
    return sampler->sample(to_seconds(clock.now_ns));
  }
  static const ProcessSample& of(const Tick& tick, const ProcessKey& key) {
    return *std::find_if(tick.processes.begin(), tick.processes.end(),
                         [&](const ProcessSample& sample) { return sample.key == key; });
  }

  tests::FakeClock clock;
  FakeProc proc;
  std::unique_ptr<Sampler> sampler;
};

TEST_F(LargeTree, SeesEveryChangeOfMemoryAtOnce) {
  start(kProcesses);
  FakeProcess grown = member(kWithoutTurn);
  grown.anon_kib = 40;
  proc.put(grown);
  EXPECT_EQ(of(sample(), kKeyWithoutTurn).rss_anon_bytes, 40 * kKib);

  FakeProcess moved = grown;  // the same sum
  moved.anon_kib = 20;
  moved.file_kib += 20;
  proc.put(moved);
  EXPECT_EQ(of(sample(), kKeyWithoutTurn).rss_anon_bytes, 20 * kKib);

  proc.put(grown);
  EXPECT_EQ(of(sample(), kKeyWithoutTurn).rss_anon_bytes, 40 * kKib);
}

TEST_F(LargeTree, SeesANewNameWithinARound) {
  start(kProcesses);
  FakeProcess renamed = member(kWithoutTurn);
  renamed.comm = "pt_data_worker";
  proc.put(renamed);

  sample();
  EXPECT_EQ(sampler->find(kKeyWithoutTurn)->comm, "python3") << "statm does not tell";
  sample();
  EXPECT_EQ(sampler->find(kKeyWithoutTurn)->comm, "pt_data_worker");
}

TEST_F(LargeTree, SeesAZombieAtOnce) {
  start(kProcesses);
  FakeProcess zombie = member(kWithoutTurn);
  zombie.state = 'Z';
  proc.put(zombie);

  const Tick tick = sample();

  EXPECT_EQ(of(tick, kKeyWithoutTurn).state, 'Z');
  EXPECT_EQ(of(tick, kKeyWithoutTurn).rss_bytes, std::nullopt);
}

TEST_F(LargeTree, SeesMemoryOfAProcessWhoseMainThreadHasEndedAtOnce) {
  start(kProcesses);
  FakeProcess leaderless = member(kWithoutTurn);
  leaderless.main_thread_ended = true;
  proc.put(leaderless);
  sample();  // statm becomes empty and stays so
  sample();
  sample();

  leaderless.anon_kib = 40;
  proc.put(leaderless);

  EXPECT_EQ(of(sample(), kKeyWithoutTurn).rss_anon_bytes, 40 * kKib);
}

TEST_F(LargeTree, ReadsStatusWhereStatmCannotBeRead) {
  start(kProcesses);
  FakeProcess grown = member(kWithoutTurn);
  grown.statm_malformed = true;
  grown.anon_kib = 40;
  proc.put(grown);

  EXPECT_EQ(of(sample(), kKeyWithoutTurn).rss_anon_bytes, 40 * kKib);
}

TEST_F(LargeTree, AShareIsCarriedForwardFromWhatWasMappedWhenItWasRead) {
  start(kProcesses, PssMode::kAlways);
  FakeProcess grown = member(kWithoutTurn);
  grown.anon_kib = grown.pss_anon_kib = grown.private_dirty_kib = 40;
  proc.put(grown);

  const Tick tick = sample();

  EXPECT_EQ(tick.tree.footprint_bytes, ((std::uint64_t{kProcesses} - 1) * 8 + 40) * kKib);
  EXPECT_FALSE(tick.tree.footprint_held);
}

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the table takes no closures
int g_opened_statm = 0;

int count_statm(int directory, const char* path, int flags, unsigned mode) {
  g_opened_statm += std::string_view(path) == "statm" ? 1 : 0;
  return ::openat(directory, path, flags, mode);
}

class CountsStatm {
 public:
  CountsStatm() {
    g_opened_statm = 0;
    before_ = replace_syscalls({&count_statm, &::read, &::pread, &::write});
  }
  ~CountsStatm() { replace_syscalls(before_); }
  CountsStatm(const CountsStatm&) = delete;
  CountsStatm& operator=(const CountsStatm&) = delete;

 private:
  Syscalls before_{};
};

TEST_F(LargeTree, OnlyLargeTreesNeedStatm) {
  const CountsStatm counts;
  start(kPerTick, PssMode::kAlways);
  sample();
  EXPECT_EQ(g_opened_statm, 0);

  proc.put(member(kRoot + kPerTick));
  sample();
  sample();
  EXPECT_EQ(g_opened_statm, kPerTick + 1) << "each once";
}

}  // namespace
}  // namespace tidemark::monitor
