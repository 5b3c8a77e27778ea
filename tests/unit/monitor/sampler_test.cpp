// SPDX-License-Identifier: Apache-2.0
#include "monitor/sampler.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "common/io.h"
#include "common/units.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_proc.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

using tests::FakeProc;
using tests::FakeProcess;

constexpr std::uint64_t kKibPerMib = 1024;

FakeProcess trainer() {
  FakeProcess process;
  process.pid = 10;
  process.anon_kib = 400 * kKibPerMib;
  process.file_kib = 50 * kKibPerMib;
  process.pss_anon_kib = process.anon_kib;
  process.private_dirty_kib = process.anon_kib;
  return process;
}

// Forked from the trainer, nothing written yet.
FakeProcess worker(pid_t pid) {
  FakeProcess process = trainer();
  process.pid = pid;
  process.ppid = 10;
  process.start_ticks = 200;
  process.pss_anon_kib = 80 * kKibPerMib;
  process.private_dirty_kib = 0;
  return process;
}

class SamplerTest : public testing::Test {
 protected:
  void start(PssMode pss = PssMode::kAlways) {
    SamplerOptions options;
    options.roots.keys = {{10, 100}};
    options.pss = pss;
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
  static int count(const Tick& tick, EventKind kind) {
    return static_cast<int>(
        std::count_if(tick.events.begin(), tick.events.end(),
                      [&](const EventRecord& event) { return event.kind == kind; }));
  }

  tests::FakeClock clock;
  FakeProc proc;
  tests::TempTree shm;  // in the place of /dev/shm
  std::unique_ptr<Sampler> sampler;
};

TEST_F(SamplerTest, RefusesATargetThatIsNotThere) {
  SamplerOptions options;
  options.roots.keys = {{10, 100}};
  options.proc_root = proc.root();

  const auto started = Sampler::start(options, proc.source(), clock);

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Errc::kNotFound);
}

TEST_F(SamplerTest, SumsTheSplitOfEveryMember) {
  proc.put(trainer());
  start();

  const Tick tick = sample();

  ASSERT_EQ(tick.processes.size(), 1U);
  EXPECT_EQ(tick.processes[0].rss_bytes, 450 * kMiB);
  EXPECT_EQ(tick.processes[0].rss_anon_bytes, 400 * kMiB);
  EXPECT_EQ(tick.processes[0].rss_file_bytes, 50 * kMiB);
  EXPECT_EQ(tick.tree.rss_bytes, 450 * kMiB);
  EXPECT_EQ(tick.tree.footprint_bytes, 400 * kMiB) << "file pages are not held by the job";
  EXPECT_EQ(tick.tree.pss_bytes, 400 * kMiB);
  EXPECT_EQ(tick.new_processes.size(), 1U);
  EXPECT_EQ(count(tick, EventKind::kSpawn), 1);
}

// Start times are in clock ticks since boot, a hundred a second.
TEST_F(SamplerTest, AProcessHasTheAgeAtWhichItWasFirstSeen) {
  clock.booted_ns = -8 * 3600 * kNsPerSecond;
  proc.put(trainer());
  start();

  ASSERT_EQ(sample().new_processes.size(), 1U);
  sample();
  FakeProcess late = worker(21);
  late.start_ticks = 8 * 3600 * 100 + 350;
  proc.put(late);
  sample();

  EXPECT_DOUBLE_EQ(sampler->find({10, 100})->age_s.value(), 8 * 3600 + 1.0);
  EXPECT_DOUBLE_EQ(sampler->find({21, late.start_ticks})->age_s.value(), 0.5);
}

TEST_F(SamplerTest, TheAgeOfAProcessThatStartsInTheFutureIsUnknown) {
  clock.booted_ns = 3600 * kNsPerSecond;
  proc.put(trainer());
  start();

  EXPECT_EQ(sample().new_processes.at(0).age_s, std::nullopt);
}

TEST_F(SamplerTest, ATickHasTheTimeAtWhichItsMemoryWasRead) {
  proc.put(trainer());
  start();
  proc.source().on_snapshot = [&] { clock.advance_s(0.25); };

  const Tick late = sample();  // the first one reads the process table
  const Tick prompt = sample();

  EXPECT_DOUBLE_EQ(late.t_s, to_seconds(clock.now_ns) - 1.0);
  EXPECT_DOUBLE_EQ(prompt.t_s, late.t_s + 1.0);
}

TEST_F(SamplerTest, FindsANewWorkerAtOnceWithoutATable) {
  proc.put(trainer());
  start();
  sample();
  const int tables = proc.source().snapshots;

  proc.put(worker(21));
  const Tick tick = sample();

  EXPECT_EQ(proc.source().snapshots, tables) << "the child list told";
  EXPECT_EQ(tick.tree.processes, 2U);
}

TEST_F(SamplerTest, ForkedWorkersDoNotRaiseTheFootprintAndTheirDeathDoesNotLowerIt) {
  proc.put(trainer());
  start();
  sample();

  FakeProcess shrunk = trainer();
  shrunk.pss_anon_kib = 80 * kKibPerMib;  // a fifth each, as five map every page
  shrunk.private_dirty_kib = 0;
  proc.put(shrunk);
  for (pid_t pid = 21; pid <= 24; ++pid) {
    proc.put(worker(pid));
  }
  const Tick with_workers = sample();
  EXPECT_EQ(with_workers.tree.rss_bytes, 5 * 450 * kMiB);
  EXPECT_EQ(with_workers.tree.footprint_bytes, 400 * kMiB);

  for (pid_t pid = 21; pid <= 24; ++pid) {
    proc.end(pid);
  }
  proc.put(trainer());
  proc.set_last_pid(999);
  clock.advance_s(2.0);
  const Tick after = sample();
  EXPECT_EQ(count(after, EventKind::kExit), 4);
  EXPECT_EQ(after.tree.footprint_bytes, 400 * kMiB);
}

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the table takes no closures
std::function<void()> g_before_a_share_is_read;

int open_and_interfere(int directory, const char* path, int flags, unsigned mode) {
  if (std::string_view(path) == "smaps_rollup" && g_before_a_share_is_read) {
    std::exchange(g_before_a_share_is_read, nullptr)();
  }
  return ::openat(directory, path, flags, mode);
}

TEST_F(SamplerTest, ADeathWhileSharesAreReadDropsThem) {
  FakeProcess sharing = trainer();
  sharing.pss_anon_kib = 320 * kKibPerMib;
  proc.put(sharing);
  proc.put(worker(21));
  start();
  ASSERT_FALSE(sample().tree.footprint_held);
  FakeProcess zombie = worker(21);
  zombie.state = 'Z';
  g_before_a_share_is_read = [&] { proc.put(zombie); };

  const Syscalls before = replace_syscalls({&open_and_interfere, &::read, &::pread, &::write});
  const Tick tick = sample();
  replace_syscalls(before);

  EXPECT_TRUE(tick.tree.footprint_held) << "they are of the time before";
  EXPECT_EQ(tick.tree.footprint_bytes, 400 * kMiB);
  EXPECT_FALSE(sample().tree.footprint_held);
}

TEST_F(SamplerTest, WithoutPssTheSumStillDoesNotCountForkedPagesTwice) {
  proc.put(trainer());
  start(PssMode::kOff);
  sample();
  for (pid_t pid = 21; pid <= 24; ++pid) {
    proc.put(worker(pid));
  }

  const Tick tick = sample();

  EXPECT_EQ(tick.tree.footprint_bytes, 400 * kMiB);
  EXPECT_FALSE(tick.tree.footprint_held);
  EXPECT_EQ(tick.tree.pss_bytes, std::nullopt);
}

TEST_F(SamplerTest, ExecIsAnEventAndChangesTheRecord) {
  proc.put(trainer());
  proc.put(worker(21));
  start();
  sample();

  FakeProcess compiler = worker(21);
  compiler.comm = "g++";
  compiler.argv = {"/usr/bin/g++", "-O2", "kernel.cpp"};
  compiler.exe = "/usr/bin/g++";
  compiler.stack_start = 2000;
  compiler.anon_kib = compiler.pss_anon_kib = 10 * kKibPerMib;
  proc.put(compiler);
  const Tick tick = sample();

  ASSERT_EQ(count(tick, EventKind::kExec), 1);
  EXPECT_EQ(sampler->find({21, 200})->argv, "/usr/bin/g++ -O2 kernel.cpp");
  EXPECT_EQ(sampler->find({21, 200})->role, Role::kCompileWorker);
  ASSERT_EQ(tick.new_processes.size(), 1U) << "recorded anew";
  EXPECT_EQ(tick.new_processes[0].age_s, 0.0) << "of this program";
}

TEST_F(SamplerTest, ExecOfTheSameProgramIsSeenByItsStack) {
  proc.put(trainer());
  proc.put(worker(21));
  start();
  sample();

  FakeProcess other_script = worker(21);
  other_script.argv = {"python3", "other.py"};
  other_script.stack_start = 2000;
  proc.put(other_script);

  EXPECT_EQ(count(sample(), EventKind::kExec), 1);
}

TEST_F(SamplerTest, AProgramFileThatIsReplacedIsNoExec) {
  for (const std::uint64_t stack_start : {1000U, 0U}) {  // 0: may not be read
    FakeProcess process = trainer();
    process.stack_start = stack_start;
    proc.put(process);
    start();
    sample();

    process.exe += " (deleted)";
    proc.put(process);
    const Tick tick = sample();

    EXPECT_EQ(count(tick, EventKind::kExec), 0) << stack_start;
    EXPECT_TRUE(tick.new_processes.empty()) << stack_start;
  }
}

TEST_F(SamplerTest, AProgramFileThatIsMovedIsNoExec) {
  FakeProcess process = trainer();
  proc.put(process);
  start();
  sample();

  process.exe = "/opt/old/python3";
  proc.put(process);

  EXPECT_EQ(count(sample(), EventKind::kExec), 0);
}

TEST_F(SamplerTest, WorkersOfAReplacedProgramAreStillForked) {
  proc.put(trainer());
  start(PssMode::kOff);
  sample();

  FakeProcess forked = worker(21);
  forked.exe += " (deleted)";
  proc.put(forked);

  EXPECT_EQ(sample().tree.footprint_bytes, 400 * kMiB);
}

TEST_F(SamplerTest, AnExecThatIsNotFinishedIsToldWhenItIs) {
  proc.put(trainer());
  proc.put(worker(21));
  start();
  sample();
  clock.advance_s(5.0);  // no longer young
  sample();

  FakeProcess compiler = worker(21);
  compiler.comm = "g++";
  compiler.argv = {};
  compiler.exe = "/usr/bin/g++";
  compiler.stack_start = 0;
  proc.put(compiler);
  clock.advance_s(-0.9);
  EXPECT_EQ(count(sample(), EventKind::kExec), 0);

  compiler.argv = {"/usr/bin/g++", "-O2", "kernel.cpp"};
  compiler.stack_start = 2000;
  proc.put(compiler);
  clock.advance_s(-0.9);
  EXPECT_EQ(count(sample(), EventKind::kExec), 1);
  EXPECT_EQ(sampler->find({21, 200})->argv, "/usr/bin/g++ -O2 kernel.cpp");
}

TEST_F(SamplerTest, AProgramWithoutArgumentsIsAnExecAfterAWhile) {
  proc.put(trainer());
  proc.put(worker(21));
  start();
  sample();

  FakeProcess silent = worker(21);
  silent.argv = {};
  silent.exe = "/usr/bin/silent";
  silent.stack_start = 2000;
  proc.put(silent);

  EXPECT_EQ(count(sample(), EventKind::kExec), 0);
  EXPECT_EQ(count(sample(), EventKind::kExec), 1);
  EXPECT_EQ(count(sample(), EventKind::kExec), 0);
}

TEST_F(SamplerTest, AChangedTitleIsNoExec) {
  proc.put(trainer());
  proc.put(worker(21));
  start();
  sample();

  FakeProcess titled = worker(21);
  titled.argv = {"ray::Actor.step"};
  proc.put(titled);
  const Tick tick = sample();

  EXPECT_EQ(count(tick, EventKind::kExec), 0);
  EXPECT_EQ(sampler->find({21, 200})->role, Role::kRay) << "but it may be a new role";
}

TEST_F(SamplerTest, AZombieIsShownAndHoldsNothing) {
  proc.put(trainer());
  FakeProcess own = worker(21);
  own.stack_start = 3000;  // not forked: memory of its own
  own.pss_anon_kib = own.private_dirty_kib = own.anon_kib;
  proc.put(own);
  start();
  ASSERT_EQ(sample().tree.footprint_bytes, 800 * kMiB);

  own.state = 'Z';
  proc.put(own);
  const Tick tick = sample();

  ASSERT_EQ(tick.processes.size(), 2U);
  EXPECT_EQ(tick.processes[1].state, 'Z');
  EXPECT_EQ(tick.processes[1].rss_bytes, std::nullopt);
  EXPECT_FALSE(sampler->finished());
  EXPECT_EQ(tick.tree.footprint_bytes, 400 * kMiB);
}

TEST_F(SamplerTest, ATreeOfZombiesIsFinished) {
  proc.put(trainer());
  start();
  sample();

  FakeProcess zombie = trainer();
  zombie.state = 'Z';
  proc.put(zombie);
  sample();

  EXPECT_TRUE(sampler->finished());
}

TEST_F(SamplerTest, AnOrphanStaysAndItsNewParentIsAnEvent) {
  proc.put(trainer());
  proc.put(worker(21));
  start();
  sample();

  FakeProcess orphan = worker(21);
  orphan.ppid = 1;
  proc.end(10);
  proc.put(orphan);
  proc.set_last_pid(999);
  clock.advance_s(2.0);
  const Tick tick = sample();

  EXPECT_EQ(tick.tree.processes, 1U);
  EXPECT_EQ(count(tick, EventKind::kReparent), 1);
  EXPECT_FALSE(sampler->finished());
}

TEST_F(SamplerTest, SaysWhoEndedAndWhenNobodyIsLeft) {
  proc.put(trainer());
  start();
  sample();

  proc.end(10);
  proc.set_last_pid(999);
  clock.advance_s(2.0);
  const Tick tick = sample();

  EXPECT_TRUE(sampler->finished());
  const auto ended = sampler->take_ended();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].exited_s, tick.t_s);
  EXPECT_TRUE(sampler->take_ended().empty());
}

TEST_F(SamplerTest, ARefusedShareIsCountedOnceAndTheRestGoesOn) {
  FakeProcess closed = trainer();
  closed.rollup_denied = true;
  proc.put(closed);
  start();

  const Tick first = sample();
  const Tick second = sample();

  ASSERT_EQ(first.losses.size(), 1U);
  EXPECT_EQ(first.losses[0].what.text(), "pss_unreadable")
      << "a symlink loop, so no lack of permission";
  EXPECT_TRUE(second.losses.empty());
  EXPECT_EQ(second.tree.footprint_bytes, 400 * kMiB) << "from the cheap numbers";
}

TEST_F(SamplerTest, TheAgeOfAShareIsKnown) {
  proc.put(trainer());
  start(PssMode::kAuto);
  sample();

  const Tick later = sample();

  EXPECT_NEAR(*later.processes[0].pss_age_s, 1.0, 1e-6);
}

TEST_F(SamplerTest, SecretsInArgumentsAreMasked) {
  FakeProcess secretive = trainer();
  secretive.argv = {"python3", "train.py", "--hf-token", "hf_abcdefghijklmnop"};
  proc.put(secretive);
  start();
  sample();

  EXPECT_EQ(sampler->find({10, 100})->argv.find("hf_abc"), std::string::npos);
}

// Its file is mapped in the process and counts as shared memory of it.
TEST_F(SamplerTest, DoesNotCountTheTracerAsTheProcess) {
  constexpr std::uint64_t kTraceKib = 512;
  FakeProcess traced = trainer();
  traced.shmem_kib = 2 * kKibPerMib + kTraceKib;
  proc.put(traced);
  shm.write("tidemark-" + std::to_string(::geteuid()) + "/trace-x/10-1.trace",
            std::string(kTraceKib * 1024, 'x'));
  start(PssMode::kOff);

  const Tick tick = sample();

  ASSERT_EQ(tick.processes.size(), 1U);
  EXPECT_EQ(tick.processes[0].rss_shmem_bytes, 2 * kMiB);
  EXPECT_EQ(tick.processes[0].rss_bytes, 452 * kMiB);
  EXPECT_EQ(tick.processes[0].footprint_bytes(), 402 * kMiB);
  EXPECT_EQ(tick.tree.footprint_bytes, 402 * kMiB);
  EXPECT_EQ(tick.roles.at(0).sum.footprint_bytes, 402 * kMiB);
}

}  // namespace
}  // namespace tidemark::monitor
