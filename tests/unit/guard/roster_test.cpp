// SPDX-License-Identifier: Apache-2.0
#include "guard/roster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_clock.h"
#include "tests/support/fake_proc.h"

namespace tidemark::guard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::FakeProcess;

// Below a wrapper; `rows` are children of the process before them, and each has its megabytes.
class GuardRosterTest : public testing::Test {
 protected:
  void put(pid_t pid, pid_t ppid, const std::vector<std::string>& argv, std::uint64_t mib) {
    FakeProcess process;
    process.pid = pid;
    process.ppid = ppid;
    process.start_ticks = static_cast<std::uint64_t>(100 + pid);
    process.argv = argv;
    process.comm = argv.front();
    process.exe = "/usr/bin/" + argv.front();
    process.stack_start = static_cast<std::uint64_t>(1000 * pid);
    process.anon_kib = mib * 1024;
    process.pss_anon_kib = mib * 1024;
    proc_.put(process);
  }
  Roster roster(pid_t root) {
    monitor::SamplerOptions options;
    options.proc_root = proc_.root();
    options.roots.keys = {{root, static_cast<std::uint64_t>(100 + root)}};
    sampler_ = *monitor::Sampler::start(options, proc_.source(), clock_);
    return make_roster(*sampler_, sampler_->sample(0.0));
  }
  static std::vector<pid_t> pids(const std::vector<ProcessKey>& keys) {
    std::vector<pid_t> result;
    for (const ProcessKey& key : keys) {
      result.push_back(key.pid);
    }
    return result;
  }

  tests::FakeProc proc_;
  tests::FakeClock clock_;
  std::unique_ptr<monitor::Sampler> sampler_;
};

TEST_F(GuardRosterTest, TheTrainerGetsTheSignalNotItsWrapperOrItsWorkers) {
  put(10, 1, {"uv", "run", "train.py"}, 2);
  put(11, 10, {"python3", "train.py"}, 200);
  put(12, 11, {"python3", "-m", "torch._inductor.compile_worker", "--workers=4"}, 900);

  const Roster found = roster(10);

  EXPECT_THAT(pids(found.trainers), ElementsAre(11));
  EXPECT_THAT(pids(found.members), testing::UnorderedElementsAre(10, 11, 12));
  ASSERT_EQ(found.largest.size(), 3U);
  EXPECT_EQ(found.largest[0].key.pid, 12);
  EXPECT_EQ(found.largest[2].key.pid, 10);
  EXPECT_THAT(found.who, HasSubstr("the trainer is pid 11"));
  EXPECT_TRUE(found.is_recognised);
}

TEST_F(GuardRosterTest, WhereNobodyIsRecognisedTheLargestGetsIt) {
  put(10, 1, {"sh", "-c", "sleep 1"}, 2);

  const Roster found = roster(10);

  EXPECT_THAT(pids(found.trainers), ElementsAre(10));
  EXPECT_THAT(found.who, HasSubstr("no trainer was recognised"));
  EXPECT_FALSE(found.is_recognised);
}

TEST_F(GuardRosterTest, TheDeadAreNoMembers) {
  put(10, 1, {"python3", "train.py"}, 200);
  FakeProcess zombie;
  zombie.pid = 11;
  zombie.ppid = 10;
  zombie.start_ticks = 111;
  zombie.state = 'Z';
  proc_.put(zombie);

  EXPECT_THAT(pids(roster(10).members), ElementsAre(10));
}

}  // namespace
}  // namespace tidemark::guard
