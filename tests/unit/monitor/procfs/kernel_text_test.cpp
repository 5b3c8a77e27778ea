// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/kernel_text.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "common/io.h"
#include "monitor/procfs/proc_files.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

TEST(KeyedNumber, MatchesWholeKeysOnly) {
  constexpr std::string_view kStat = "anon_thp 5\nanon 17\nfile 3\n";

  EXPECT_EQ(keyed_number(kStat, "anon"), 17U);
  EXPECT_EQ(keyed_number(kStat, "shmem"), std::nullopt);
  EXPECT_EQ(keyed_number("anon\nanon ", "anon"), std::nullopt);
}

TEST(UndoOctalEscapes, ReplacesCompleteEscapesOnly) {
  EXPECT_EQ(undo_octal_escapes("/a\\040b\\134c"), "/a b\\c");
  EXPECT_EQ(undo_octal_escapes("/a\\04"), "/a\\04");
  EXPECT_EQ(undo_octal_escapes("/a\\999"), "/a\\999");
}

TEST(ParseMeminfo, ReadsWhatASampleNeeds) {
  const MeminfoFields fields = parse_meminfo(
      "MemTotal:       24682416 kB\nMemFree: 1 kB\nMemAvailable: 24373004 kB\nSwapTotal: 10 kB\n"
      "SwapFree: 4 kB\nShmem: 12776 kB\nShmemHugePages: 7 kB\nHugePages_Total: 3\n");

  EXPECT_EQ(fields.total_bytes, 24682416ULL * 1024);
  EXPECT_EQ(fields.available_bytes, 24373004ULL * 1024);
  EXPECT_EQ(fields.swap_total_bytes, 10U * 1024);
  EXPECT_EQ(fields.swap_free_bytes, 4U * 1024);
  EXPECT_EQ(fields.shmem_bytes, 12776U * 1024);
}

TEST(ParseMeminfo, LeavesMissingLinesUnknown) {
  const MeminfoFields fields = parse_meminfo("MemTotal: much\nmess\n");

  EXPECT_EQ(fields.total_bytes, std::nullopt);
  EXPECT_EQ(fields.available_bytes, std::nullopt);
}

TEST(ParsePressure, ReadsTheLastTenSeconds) {
  const PressureFields fields = parse_pressure(
      "some avg10=12.50 avg60=1.00 avg300=0.10 total=99\nfull avg10=3.25 avg60=0 avg300=0 "
      "total=1\n");

  EXPECT_EQ(fields.some_avg10, 12.5);
  EXPECT_EQ(fields.full_avg10, 3.25);
}

TEST(ParsePressure, RefusesWhatIsNoPercentage) {
  const PressureFields fields = parse_pressure("some avg10=nan\nfull avg10=101\nsome\n");

  EXPECT_EQ(fields.some_avg10, std::nullopt);
  EXPECT_EQ(fields.full_avg10, std::nullopt);
}

TEST(WholeLines, AreHandedOutUncutFromAFileOfAnySize) {
  const tests::TempTree tree;
  std::string text;
  for (int line = 0; line < 5000; ++line) {
    text += "line " + std::to_string(line) + " of a file that is larger than one piece\n";
  }
  tree.write("file", text + "the end");
  const auto fd = open_file(tree.path("file"), O_RDONLY);
  ASSERT_TRUE(fd);

  std::string read;
  const auto status = read_whole_lines(fd->get(), [&](std::string_view lines) {
    EXPECT_TRUE(lines.ends_with('\n') || lines.ends_with("the end"));
    read += lines;
    return true;
  });

  EXPECT_TRUE(status);
  EXPECT_EQ(read, text + "the end");
}

}  // namespace
}  // namespace tidemark::monitor
