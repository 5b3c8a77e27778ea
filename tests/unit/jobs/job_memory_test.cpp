// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/job_memory.h"

#include <atomic>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/temp_tree.h"

namespace tidemark::harness {
namespace {

// Processes of a machine that is not there; sizes in KiB, as the kernel writes them.
class Machine {
 public:
  void put(int pid, int anon_kib, int pss_kib, const std::string& children) const {
    const std::string folder = std::to_string(pid);
    tree_.write(
        folder + "/status",
        fmt::format("Name:\tpython3\nState:\tS (sleeping)\nVmRSS:\t  99999 kB\nRssAnon:\t{:>8} kB\n"
                    "RssFile:\t   5000 kB\nRssShmem:\t      10 kB\nVmSwap:\t       1 kB\n",
                    anon_kib));
    tree_.write(folder + "/smaps_rollup",
                fmt::format("Rss: 99999 kB\nPss: 99999 kB\nPss_Anon: {} kB\nPss_File: 500 kB\n"
                            "Pss_Shmem: 5 kB\nSwapPss: 2 kB\n",
                            pss_kib));
    tree_.write(fmt::format("{0}/task/{0}/children", pid), children);
  }
  const std::string& root() const { return tree_.path(); }
  const tests::TempTree& tree() const { return tree_; }

 private:
  tests::TempTree tree_;
};

TEST(TreeFootprint, OfOneProcessIsWhatNoFileBacks) {
  const Machine machine;
  machine.put(5, 1000, 900, "");

  EXPECT_EQ(tree_footprint_bytes(machine.root(), 5), 1011U * 1024);
  EXPECT_EQ(own_footprint_bytes(machine.root(), 5), 1011U * 1024);
}

TEST(TreeFootprint, CountsPagesThatRelativesShareOnce) {
  const Machine machine;
  machine.put(5, 1000, 400, "6 7 ");
  machine.put(6, 1000, 300, "");
  machine.put(7, 1000, 300, "8 ");
  machine.put(8, 1000, 100, "");

  EXPECT_EQ(tree_footprint_bytes(machine.root(), 5), (400U + 300 + 300 + 100 + 4 * 7) * 1024);
}

TEST(TreeFootprint, LeavesOutAChildThatHasVanished) {
  const Machine machine;
  machine.put(5, 1000, 400, "6 ");

  EXPECT_EQ(tree_footprint_bytes(machine.root(), 5), 407U * 1024);
}

TEST(TreeFootprint, OfAProcessThatIsGoneIsUnknown) {
  const Machine machine;

  EXPECT_EQ(tree_footprint_bytes(machine.root(), 5), std::nullopt);
}

TEST(TreeFootprint, OfAZombieIsUnknown) {
  const Machine machine;
  machine.tree().write("5/status", "Name:\tpython3\nState:\tZ (zombie)\n");

  EXPECT_EQ(tree_footprint_bytes(machine.root(), 5), std::nullopt);
}

TEST(PeakMeter, KeepsTheHighestReading) {
  std::atomic<int> calls = 0;
  PeakMeter peak([&calls]() -> std::optional<std::uint64_t> {
    const int call = ++calls;
    return call == 1 ? std::nullopt : std::optional<std::uint64_t>(call == 2 ? 50 : 10);
  });

  while (calls < 4) {
    std::this_thread::yield();
  }

  EXPECT_EQ(peak.finish(), 50U);
}

TEST(PeakMeter, ReadsAtLeastOnceHoweverShortItsLife) {
  PeakMeter peak([] { return std::optional<std::uint64_t>(7); });

  EXPECT_EQ(peak.finish(), 7U);
}

}  // namespace
}  // namespace tidemark::harness
