// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/ledger_rows.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::heap {
namespace {

using monitor::SmapsMapping;

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kBegin = 0x7f0000000000;

// The text of a mapping as the kernel writes it; sizes in KiB.
std::string mapping(std::uint64_t begin, std::uint64_t end, const std::string& permissions,
                    const std::string& file, int rss, int pss, int anonymous, int swap = 0) {
  char head[128];
  std::snprintf(head, sizeof head, "%lx-%lx %s 00000000 %s\n", begin, end, permissions.c_str(),
                file.c_str());
  const auto line = [](const char* key, int kib) {
    return std::string(key) + ": " + std::to_string(kib) + " kB\n";
  };
  return head + line("Rss", rss) + line("Pss", pss) + line("Private_Dirty", anonymous) +
         line("Anonymous", anonymous) + line("AnonHugePages", anonymous / 2) + line("Swap", swap) +
         line("SwapPss", swap) + "VmFlags: rd wr\n";
}

std::vector<SmapsMapping> read(const std::string& text) {
  std::vector<SmapsMapping> all;
  monitor::SmapsReader reader([&](const SmapsMapping& each) { all.push_back(each); });
  reader.add(text);
  EXPECT_TRUE(reader.finish());
  return all;
}

std::vector<LedgerRow> rows_of(const std::string& text, std::vector<LedgerRegion> regions = {},
                               std::size_t most_named = 100) {
  return LedgerRows(std::move(regions),
                    [](std::uint64_t begin, std::uint64_t end) { return end - begin; })
      .take(read(text), most_named);
}

const LedgerRow* find(const std::vector<LedgerRow>& rows, LedgerKind kind,
                      const std::string& name = "") {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const LedgerRow& each) {
    return each.kind == kind && each.name == name;
  });
  return row == rows.end() ? nullptr : &*row;
}

LedgerRow sum_of(const std::vector<LedgerRow>& rows) {
  LedgerRow sum;
  for (const LedgerRow& row : rows) {
    add_to(sum, row);
  }
  return sum;
}

TEST(LedgerRows, TellProgramsFilesAndSharedMemoryApart) {
  const auto rows = rows_of(
      mapping(0x1000, 0x3000, "r-xp", "08:01 5 /usr/bin/train", 8, 8, 0) +
      mapping(0x3000, 0x5000, "rw-p", "08:01 5 /usr/bin/train", 8, 8, 4) +
      mapping(0x5000, 0x9000, "rw-p", "00:00 0", 16, 16, 16) +  // variables of the program
      mapping(0x10000, 0x20000, "r--p", "08:01 6 /lib/libm.so.6", 40, 10, 0) +
      mapping(0x20000, 0x40000, "r--s", "08:01 7 /data/set.arrow", 100, 50, 0) +
      mapping(0x40000, 0x60000, "rw-s", "00:19 8 /dev/shm/torch_4711_99_0", 60, 30, 0) +
      mapping(0x60000, 0x70000, "rw-s", "00:19 9 /dev/shm/torch_4711_99_1 (deleted)", 20, 20, 0) +
      mapping(0x70000, 0x80000, "rw-s", "00:01 10 /dev/zero (deleted)", 24, 24, 0) +
      mapping(0x80000, 0x90000, "rw-s", "00:01 11 /memfd:buffer (deleted)", 12, 12, 0) +
      mapping(0x90000, 0xa0000, "rw-s", "00:19 12 /dev/shm/tidemark-0/r/9.trace", 4, 4, 0) +
      mapping(0xa0000, 0xb0000, "rw-p", "00:00 0 [heap]", 36, 36, 36) +
      mapping(0xb0000, 0xc0000, "rw-p", "00:00 0 [stack]", 28, 28, 28) +
      mapping(0xc0000, 0xd0000, "r-xp", "00:00 0 [vdso]", 4, 1, 0));

  EXPECT_EQ(find(rows, LedgerKind::kProgram, "/usr/bin/train")->rss_bytes, 32U << 10U);
  EXPECT_EQ(find(rows, LedgerKind::kProgram, "/usr/bin/train")->footprint_bytes, 20U << 10U);
  EXPECT_EQ(find(rows, LedgerKind::kProgram, "/lib/libm.so.6")->footprint_bytes, 0U);
  EXPECT_EQ(find(rows, LedgerKind::kFile, "/data/set.arrow")->pss_bytes, 50U << 10U);
  const LedgerRow* const torch = find(rows, LedgerKind::kSharedMemory, "/dev/shm/torch_4711_*");
  ASSERT_NE(torch, nullptr);
  EXPECT_EQ(torch->maker_pid, 4711);
  EXPECT_EQ(torch->footprint_bytes, 60U << 10U);
  EXPECT_EQ(torch->pss_footprint_bytes, 30U << 10U);
  EXPECT_NE(find(rows, LedgerKind::kSharedMemory, "/dev/shm/torch_4711_* (deleted)"), nullptr);
  EXPECT_NE(find(rows, LedgerKind::kSharedMemory, std::string(kSharedAnonymousName)), nullptr);
  EXPECT_NE(find(rows, LedgerKind::kSharedMemory, "/memfd:buffer (deleted)"), nullptr);
  EXPECT_NE(find(rows, LedgerKind::kTracer), nullptr);
  EXPECT_EQ(find(rows, LedgerKind::kMalloc)->rss_bytes, 36U << 10U);
  EXPECT_EQ(find(rows, LedgerKind::kThreadStacks)->rss_bytes, 28U << 10U);
  EXPECT_EQ(find(rows, LedgerKind::kOther)->rss_bytes, 4U << 10U);
}

TEST(LedgerRows, TakeSharedMemoryOfAGpuProcessForPinned) {
  const auto rows =
      rows_of(mapping(0x1000, 0x3000, "rw-s", "00:05 77 /dev/nvidiactl", 0, 0, 0) +
              mapping(0x3000, 0x9000, "rw-s", "00:01 9 /dev/zero (deleted)", 24, 24, 0));

  EXPECT_EQ(find(rows, LedgerKind::kPinned, std::string(kSharedAnonymousName))->rss_bytes,
            24U << 10U);
}

TEST(LedgerRows, DivideAMappingAmongTheRegionsInIt) {
  const std::uint64_t end = kBegin + 8 * kMiB;
  const std::vector<LedgerRegion> regions{
      {{kBegin + kMiB, kBegin + 2 * kMiB},
       LedgerKind::kPythonInUse,
       LedgerKind::kPythonFree,
       kMiB / 4},
      {{kBegin + 2 * kMiB, kBegin + 3 * kMiB},
       LedgerKind::kPythonInUse,
       LedgerKind::kPythonFree,
       kMiB / 4},
      {{kBegin + 6 * kMiB, kBegin + 7 * kMiB}, LedgerKind::kThreadStacks, std::nullopt, 0}};

  const auto rows =
      rows_of(mapping(kBegin, end, "rw-p", "00:00 0", 8192, 8191, 8192, 777), regions);

  EXPECT_EQ(find(rows, LedgerKind::kPythonInUse)->rss_bytes, 2 * kMiB - kMiB / 2);
  EXPECT_EQ(find(rows, LedgerKind::kPythonInUse)->count, 2U);
  EXPECT_EQ(find(rows, LedgerKind::kPythonFree)->rss_bytes, kMiB / 2);
  EXPECT_EQ(find(rows, LedgerKind::kThreadStacks)->rss_bytes, kMiB);
  EXPECT_EQ(find(rows, LedgerKind::kAnonymous)->rss_bytes, 5 * kMiB);
  const LedgerRow sum = sum_of(rows);
  EXPECT_EQ(sum.rss_bytes, 8 * kMiB);
  EXPECT_EQ(sum.pss_bytes, 8191U << 10U);
  EXPECT_EQ(sum.swap_bytes, 777U << 10U);
  EXPECT_EQ(sum.footprint_bytes, 8 * kMiB + (777U << 10U));
  EXPECT_EQ(sum.huge_pages_bytes, 4 * kMiB);
}

TEST(LedgerRows, NeverGiveARegionMoreThanTheKernelCounts) {
  const std::vector<LedgerRegion> regions{
      {{kBegin, kBegin + 8 * kMiB}, LedgerKind::kMallocInUse, LedgerKind::kMallocFree, 100 * kMiB}};

  const auto rows =
      rows_of(mapping(kBegin, kBegin + 8 * kMiB, "rw-p", "00:00 0", 1000, 1000, 1000), regions);

  EXPECT_EQ(find(rows, LedgerKind::kMallocFree)->rss_bytes, 1000U << 10U);
  EXPECT_EQ(sum_of(rows).rss_bytes, 1000U << 10U);
}

TEST(LedgerRows, KeepWhatIsInSwapAlone) {
  const std::vector<LedgerRegion> regions{
      {{kBegin, kBegin + 4 * kMiB}, LedgerKind::kMallocInUse, LedgerKind::kMallocFree, 0}};

  const auto rows =
      rows_of(mapping(kBegin, kBegin + 8 * kMiB, "rw-p", "00:00 0", 0, 0, 0, 2048), regions);

  EXPECT_EQ(sum_of(rows).swap_bytes, 2 * kMiB);
  EXPECT_EQ(find(rows, LedgerKind::kMallocInUse)->swap_bytes, kMiB);
}

TEST(LedgerRows, PutSmallFilesTogether) {
  std::string text;
  for (int i = 1; i <= 20; ++i) {
    text +=
        mapping(0x10000UL * static_cast<unsigned>(i), 0x10000UL * static_cast<unsigned>(i) + 0x1000,
                "r--s", "08:01 5 /data/" + std::to_string(i), i, i, 0);
  }

  const auto rows = rows_of(text, {}, 3);

  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(find(rows, LedgerKind::kFile)->count, 17U);
  EXPECT_NE(find(rows, LedgerKind::kFile, "/data/20"), nullptr);
  EXPECT_EQ(sum_of(rows).rss_bytes, 210U << 10U);
}

TEST(LedgerRows, KeepNamesAsTheyAre) {
  const auto rows =
      rows_of(mapping(0x1000, 0x3000, "r--s", "08:01 5 /tmp/a\\012b\x1b[31m\xff", 8, 8, 0));

  EXPECT_NE(find(rows, LedgerKind::kFile, "/tmp/a\nb\x1b[31m\xff"), nullptr);
}

TEST(SegmentName, PutsTheSegmentsOfAProcessTogether) {
  std::optional<std::int64_t> pid;

  EXPECT_EQ(segment_name("/dev/shm/torch_4711_2066313905_0", pid), "/dev/shm/torch_4711_*");
  EXPECT_EQ(pid, 4711);
  pid.reset();
  EXPECT_EQ(segment_name("/dev/shm/mine", pid), "/dev/shm/mine");
  EXPECT_EQ(segment_name("/SYSV00000000 (deleted)", pid), "/SYSV00000000 (deleted)");
  EXPECT_EQ(pid, std::nullopt);
}

}  // namespace
}  // namespace tidemark::heap
