// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/memory_account.h"
#include "common/units.h"

#include <gtest/gtest.h>

#include <vector>

namespace tidemark::reader {
namespace {

constexpr std::uint32_t kHeapSite = 1;
constexpr std::uint32_t kMapSite = 2;

// A process made by hand: its mappings at round addresses, and what was recorded in them.
class Process {
 public:
  void add_area(AreaKind kind, std::uint64_t begin, std::uint64_t bytes, std::uint64_t resident) {
    areas.push_back({begin, begin + bytes, kind, resident, resident});
  }
  void add_block(std::uint64_t address, std::uint64_t bytes, double weight = 1.0,
                 std::uint32_t site = kHeapSite) {
    scan.blocks.push_back({address, bytes, weight, site, 0});
    for (LiveSite& known : scan.sites) {
      if (known.site == site) {
        known.bytes += weight * static_cast<double>(bytes);
        return;
      }
    }
    LiveSite& added = scan.sites.emplace_back();
    added.site = site;
    added.bytes = weight * static_cast<double>(bytes);
  }
  MemoryAccount account() const {
    AccountInput input;
    input.areas = areas;
    input.scan = &scan;
    input.kind_of = [](std::uint32_t site) {
      return site == kMapSite ? AllocationKind::kAnonymousMap : AllocationKind::kHeap;
    };
    input.residency_of = [this](std::span<const MemoryRange>) { return residency; };
    input.sample_every_bytes = sample_every_bytes;
    return make_account(input);
  }

  std::vector<MemoryArea> areas;
  LiveScan scan;
  std::optional<Residency> residency;
  std::uint64_t sample_every_bytes = 0;
};

TEST(MemoryAccount, CallsSlackWhatIsResidentBesideTheBlocks) {
  Process process;
  process.add_area(AreaKind::kHeap, 0x10000000, 200 * kMiB, 200 * kMiB);
  process.add_block(0x10000000, 1000);
  process.add_block(0x11000000, 30 * kMiB);

  const MemoryAccount account = process.account();

  EXPECT_EQ(account.blocks_bytes, 30 * kMiB + 1000);
  EXPECT_EQ(account.slack_bytes, 170 * kMiB - 1000);
  EXPECT_EQ(account.unhooked_bytes, 0U);
}

TEST(MemoryAccount, TellsTheAllocatorsAreasFromOthersByWhatWasRecordedInThem) {
  Process process;
  process.add_area(AreaKind::kAnonymous, 0x10000000, 64 * kMiB, 10 * kMiB);  // an arena
  process.add_area(AreaKind::kAnonymous, 0x40000000, 64 * kMiB, 7 * kMiB);   // nobody saw it come
  process.add_area(AreaKind::kStack, 0x70000000, kMiB, kMiB);
  process.add_area(AreaKind::kOther, 0x80000000, kMiB, kMiB / 2);  // data of a library
  process.add_area(AreaKind::kTrace, 0x90000000, kMiB, kMiB);
  process.add_block(0x10001000, 1000);

  MemoryAccount account = process.account();
  EXPECT_EQ(account.slack_bytes, 10 * kMiB - 1000);
  EXPECT_EQ(account.unhooked_bytes, 8 * kMiB + kMiB / 2);
  EXPECT_EQ(account.tracer_bytes, kMiB);

  process.add_block(0x40001000, 5 * kMiB, 1.0, kMapSite);
  account = process.account();
  EXPECT_EQ(account.blocks_bytes, 5 * kMiB + 1000);
  EXPECT_EQ(account.unhooked_bytes, kMiB + kMiB / 2);
}

TEST(MemoryAccount, DoesNotTakeWhatWasNeverTouchedForABlock) {
  Process process;
  process.add_area(AreaKind::kAnonymous, 0x10000000, 128 * kMiB, 2 * kMiB);
  process.add_block(0x10000000, 128 * kMiB);
  process.residency = Residency{0.01, 0.0, 100, 100};

  const MemoryAccount account = process.account();

  EXPECT_NEAR(static_cast<double>(account.blocks_bytes), 1.28 * kMiB, 10.0);
  EXPECT_NEAR(static_cast<double>(account.slack_bytes), 0.72 * kMiB, 10.0);
}

// A large block of which no sample was taken has a mapping of its own.
TEST(MemoryAccount, LeavesSmallMappingsToTheEstimateOfASampledProcess) {
  Process process;
  process.sample_every_bytes = kMiB / 2;
  process.add_area(AreaKind::kAnonymous, 0x10000000, kMiB, kMiB);
  process.add_area(AreaKind::kAnonymous, 0x20000000, kMiB, kMiB);
  process.add_area(AreaKind::kAnonymous, 0x40000000, 8 * kMiB, 8 * kMiB);
  process.add_block(0x10000000, kMiB, 2.0);  // stands for both

  const MemoryAccount account = process.account();

  EXPECT_EQ(account.blocks_bytes, 2 * kMiB);
  EXPECT_EQ(account.slack_bytes, 0U);
  EXPECT_EQ(account.unhooked_bytes, 8 * kMiB);
}

TEST(MemoryAccount, TakesWhatFollowsAFileForItsData) {
  Process process;
  process.sample_every_bytes = kMiB / 2;
  process.add_area(AreaKind::kOther, 0x10000000, kMiB, 0);
  process.add_area(AreaKind::kAnonymous, 0x10100000, kMiB, kMiB);

  EXPECT_EQ(process.account().unhooked_bytes, kMiB);
}

TEST(MemoryAccount, IsNeverNegative) {
  Process process;
  process.add_area(AreaKind::kHeap, 0x10000000, kMiB, kMiB);
  process.add_block(0x10000000, 1000, 1e6);

  const MemoryAccount account = process.account();

  EXPECT_EQ(account.slack_bytes, 0U);
  EXPECT_EQ(account.blocks_bytes, kMiB);
}

}  // namespace
}  // namespace tidemark::reader
