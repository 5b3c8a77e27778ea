// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/proc_smaps.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidemark::monitor {
namespace {

constexpr std::uint64_t kKib = 1024;

constexpr std::string_view kRollup =
    "55daf220b000-7ffdbc3ea000 ---p 00000000 00:00 0                          [rollup]\n"
    "Rss:                1688 kB\n"
    "Pss:                 414 kB\n"
    "Pss_Dirty:           112 kB\n"
    "Pss_Anon:            112 kB\n"
    "Pss_File:            272 kB\n"
    "Pss_Shmem:            30 kB\n"
    "Shared_Clean:       1508 kB\n"
    "Shared_Dirty:          0 kB\n"
    "Private_Clean:        68 kB\n"
    "Private_Dirty:       112 kB\n"
    "Anonymous:           120 kB\n"
    "AnonHugePages:      2048 kB\n"
    "Swap:                 24 kB\n"
    "SwapPss:               8 kB\n"
    "Locked:                0 kB\n";

std::string mapping(const std::string& tail, const std::string& fields) {
  return "7f0000000000-7f0000100000 rw-p 00000000 " + tail + "\n" + fields +
         "VmFlags: rd wr mr mw me ac sd \n";
}

std::string fields(int rss, int pss, int priv, int anonymous, int swap_pss = 0) {
  const auto line = [](const char* key, int kib) {
    return std::string(key) + ":      " + std::to_string(kib) + " kB\n";
  };
  return line("Rss", rss) + line("Pss", pss) + line("Private_Clean", 0) +
         line("Private_Dirty", priv) + line("Anonymous", anonymous) + line("SwapPss", swap_pss);
}

Result<PssFields> sum(std::string_view text) {
  SmapsAccumulator sums;
  sums.add(text);
  return sums.finish();
}

TEST(ParseSmapsRollup, ReadsTheSplitThatTheKernelGives) {
  const auto pss = parse_smaps_rollup(kRollup);

  ASSERT_TRUE(pss);
  EXPECT_EQ(pss->rss_bytes, 1688 * kKib);
  EXPECT_EQ(pss->pss_bytes, 414 * kKib);
  EXPECT_EQ(pss->pss_anon_bytes, 112 * kKib);
  EXPECT_EQ(pss->pss_file_bytes, 272 * kKib);
  EXPECT_EQ(pss->pss_shmem_bytes, 30 * kKib);
  EXPECT_EQ(pss->anonymous_bytes, 120 * kKib);
  EXPECT_EQ(pss->anon_huge_pages_bytes, 2048 * kKib);
  EXPECT_EQ(pss->uss_bytes(), 180 * kKib);
  EXPECT_EQ(pss->footprint_bytes(), (112 + 30 + 8) * kKib);
  EXPECT_FALSE(pss->split_estimated);
}

TEST(ParseSmapsRollup, SaysThatAnOldKernelGivesNoSplit) {
  const auto pss = parse_smaps_rollup("1000-2000 ---p 0 00:00 0 [rollup]\nRss: 8 kB\nPss: 6 kB\n");

  ASSERT_TRUE(pss);
  EXPECT_EQ(pss->pss_bytes, 6 * kKib);
  EXPECT_TRUE(pss->split_estimated);
}

TEST(ParseSmapsRollup, RefusesATextWithoutPss) {
  EXPECT_FALSE(parse_smaps_rollup(""));
  EXPECT_FALSE(parse_smaps_rollup("Rss: 1 kB\n"));
  EXPECT_FALSE(parse_smaps_rollup("Pss: much kB\n"));
}

TEST(ParseMappingHead, ReadsWhereAMappingIsAndWhatItMaps) {
  const auto head =
      parse_mapping_head("55d0c000-55d0e000 r--p 00001000 fe:01 123    /opt/my lib.so (deleted)");

  ASSERT_TRUE(head);
  EXPECT_EQ(head->begin, 0x55d0c000U);
  EXPECT_EQ(head->end, 0x55d0e000U);
  EXPECT_EQ(head->device, "fe:01");
  EXPECT_EQ(head->inode, "123");
  EXPECT_EQ(head->name, "/opt/my lib.so (deleted)");
  EXPECT_EQ(parse_mapping_head("1000-2000 rw-p 0 00:00 0")->name, "");
}

TEST(ParseMappingHead, RefusesOtherLines) {
  for (const char* line : {"", "Rss: 8 kB", "Anonymous:", "2000-1000 rw-p 0 0 0", "1000-2000",
                           "1000 2000 rw-p", "-1000 rw-p", "fffffffffffffffff-1 rw-p"}) {
    EXPECT_FALSE(parse_mapping_head(line)) << line;
  }
}

TEST(SmapsAccumulator, ChargesAnonymousMappingsToAnon) {
  const auto pss = sum(mapping("00:00 0 [heap]", fields(100, 60, 20, 100, 7)) +
                       mapping("00:00 0", fields(10, 10, 10, 10)));

  ASSERT_TRUE(pss);
  EXPECT_EQ(pss->pss_anon_bytes, 70 * kKib);
  EXPECT_EQ(pss->pss_file_bytes, 0U);
  EXPECT_EQ(pss->swap_pss_bytes, 7 * kKib);
  EXPECT_EQ(pss->private_dirty_bytes, 30 * kKib);
  EXPECT_TRUE(pss->split_estimated);
}

TEST(SmapsAccumulator, ChargesSharedMemoryOfEveryKindToShmem) {
  for (const char* name : {"/dev/zero (deleted)", "/SYSV00000000 (deleted)",
                           "/memfd:ring (deleted)", "/dev/shm/torch_12_34_0"}) {
    const auto pss = sum(mapping(std::string("00:01 2049 ") + name, fields(100, 50, 0, 0)));

    ASSERT_TRUE(pss);
    EXPECT_EQ(pss->pss_shmem_bytes, 50 * kKib) << name;
    EXPECT_EQ(pss->pss_anon_bytes, 0U) << name;
  }
}

TEST(SmapsAccumulator, TakesCopiedPagesOfAFileAsAnon) {
  // 40 of 100 KiB were written to, all private; the rest is a library shared with others.
  const auto pss = sum(mapping("fe:00 247498 /usr/lib/libtorch.so", fields(100, 46, 40, 40)));

  ASSERT_TRUE(pss);
  EXPECT_EQ(pss->pss_anon_bytes, 40 * kKib);
  EXPECT_EQ(pss->pss_file_bytes, 6 * kKib);
}

TEST(SmapsAccumulator, SharesCopiedPagesThatAForkShares) {
  // All pages copied, then forked: two processes have half each.
  const auto pss = sum(mapping("fe:00 247498 /data", fields(100, 50, 0, 100)));

  ASSERT_TRUE(pss);
  EXPECT_EQ(pss->pss_anon_bytes, 50 * kKib);
  EXPECT_EQ(pss->pss_file_bytes, 0U);
}

TEST(SmapsAccumulator, GivesTheSameSumsHoweverTheTextIsCut) {
  const std::string text = mapping("00:00 0 [heap]", fields(100, 60, 20, 100, 7)) +
                           mapping("00:01 9 /dev/zero (deleted)", fields(64, 32, 0, 0)) +
                           mapping("fe:00 5 /a b: c\\012d-e", fields(100, 46, 40, 40));
  const auto whole = sum(text);
  ASSERT_TRUE(whole);

  for (const std::size_t step : {1U, 2U, 7U, 61U}) {
    SmapsAccumulator sums;
    for (std::size_t at = 0; at < text.size(); at += step) {
      sums.add(std::string_view(text).substr(at, step));
    }
    const auto pieces = sums.finish();

    ASSERT_TRUE(pieces);
    EXPECT_EQ(pieces->rss_bytes, 264 * kKib);
    EXPECT_EQ(pieces->pss_anon_bytes, whole->pss_anon_bytes);
    EXPECT_EQ(pieces->pss_shmem_bytes, 32 * kKib);
    EXPECT_EQ(pieces->pss_file_bytes, 6 * kKib);
  }
}

TEST(SmapsAccumulator, RefusesFieldsOutsideAMappingAndEndlessLines) {
  EXPECT_FALSE(sum("Rss: 1 kB\n"));
  EXPECT_FALSE(sum("7f00-7f10 rw-p " + std::string(1U << 20U, 'x')));
}

TEST(SmapsReader, GivesEachMappingWhereverTheTextIsCut) {
  const std::string text = "1000-3000 r-xp 00000000 08:01 5 /usr/bin/a b\n" + fields(8, 4, 0, 0) +
                           "Private_Hugetlb: 2048 kB\nVmFlags: rd ex\n" +
                           "3000-5000 rw-s 00000000 00:01 9 /dev/zero (deleted)\n" +
                           fields(6, 6, 6, 0, 3) + "Swap: 5 kB\n";
  for (std::size_t piece = 1; piece < text.size(); piece += 7) {
    std::vector<SmapsMapping> all;
    SmapsReader reader([&](const SmapsMapping& each) { all.push_back(each); });
    for (std::size_t at = 0; at < text.size(); at += piece) {
      reader.add(std::string_view(text).substr(at, piece));
    }
    ASSERT_TRUE(reader.finish());
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].name, "/usr/bin/a b");
    EXPECT_EQ(all[0].backing, SmapsMapping::Backing::kFile);
    EXPECT_TRUE(all[0].is_executable() && all[0].is_readable() && !all[0].is_writable());
    EXPECT_EQ(all[0].hugetlb_bytes, 2048 * kKib);
    EXPECT_EQ(all[0].footprint_bytes(), 0U);
    EXPECT_EQ(all[1].backing, SmapsMapping::Backing::kShmem);
    EXPECT_EQ(all[1].footprint_bytes(), 6 * kKib);  // without swap, which is nobody's
    EXPECT_EQ(all[1].swap_bytes, 5 * kKib);
  }
}

TEST(SmapsReader, CountsCopiedPagesAndSwapOfAFile) {
  std::vector<SmapsMapping> all;
  SmapsReader reader([&](const SmapsMapping& each) { all.push_back(each); });
  reader.add(mapping("08:01 5 /lib/a.so", fields(100, 60, 20, 20) + "Swap: 7 kB\n"));
  ASSERT_TRUE(reader.finish());

  EXPECT_EQ(all[0].footprint_bytes(), 27 * kKib);
  EXPECT_EQ(all[0].pss_anon_bytes(), 20 * kKib);
}

TEST(SmapsReader, RefusesWhatIsNoSmaps) {
  SmapsReader reader([](const SmapsMapping&) {});
  reader.add("Rss: 8 kB\n");

  EXPECT_FALSE(reader.finish());
}

}  // namespace
}  // namespace tidemark::monitor
