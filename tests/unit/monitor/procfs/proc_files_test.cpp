// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/proc_files.h"

#include <fcntl.h>

#include <string>

#include <gtest/gtest.h>

#include "common/io.h"
#include "tests/support/temp_tree.h"

namespace tidemark::monitor {
namespace {

constexpr std::string_view kRest =
    " S 5126 5100 4108 34816 -1 4194304 100 0 0 0 30 12 0 0 20 0 9 0 103644 3133440 390 "
    "18446744073709551615 94356851564544 94356851584425 140723474731328 0 0\n";

TEST(ParseStat, ReadsTheFieldsOfProc5) {
  const std::string text = "5140 (cat)" + std::string(kRest);
  const auto fields = parse_stat(text);

  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->pid, 5140);
  EXPECT_EQ(fields->comm, "cat");
  EXPECT_EQ(fields->state, 'S');
  EXPECT_EQ(fields->ppid, 5126);
  EXPECT_EQ(fields->process_group, 5100);
  EXPECT_EQ(fields->session, 4108);
  EXPECT_EQ(fields->cpu_ticks, 42U);
  EXPECT_EQ(fields->threads, 9U);
  EXPECT_EQ(fields->start_ticks, 103644U);
  EXPECT_EQ(fields->stack_start, 140723474731328U);
}

TEST(ParseStat, FindsTheEndOfANameThatImitatesTheRestOfTheLine) {
  for (const std::string name : {"a) R 1 2 3 (b", "((", "))", ") ", "x\ny", "", " "}) {
    const std::string text = "7 (" + name + ")" + std::string(kRest);
    const auto fields = parse_stat(text);

    ASSERT_TRUE(fields) << name;
    EXPECT_EQ(fields->comm, name);
    EXPECT_EQ(fields->ppid, 5126);
  }
}

TEST(ParseStat, RefusesATruncatedOrForeignLine) {
  const std::string whole = "5140 (cat)" + std::string(kRest);
  for (const std::string& text :
       {std::string(), std::string("5140 (cat)"), std::string("5140 cat S 1 2 3"),
        std::string(") ("), whole.substr(0, 60), "x" + whole}) {
    EXPECT_FALSE(parse_stat(text)) << text;
  }
}

TEST(ReadStat, GivesWhatOutlivesTheText) {
  const tests::TempTree proc;
  proc.write("7/stat", "7 (a) name)" + std::string(kRest));
  proc.write("8/stat", "8 (cut");
  const auto directory = open_file(proc.path(), O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(directory);

  const auto fields = read_stat(directory->get(), 7);

  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->pid, 7);
  EXPECT_EQ(fields->comm, "");
  EXPECT_EQ(fields->start_ticks, 103644U);
  EXPECT_FALSE(read_stat(directory->get(), 8));
  EXPECT_FALSE(read_stat(directory->get(), 9));
}

TEST(ParseStatm, ReadsTheFirstThreeFields) {
  const auto fields = parse_statm("1389 390 311 5 0 115 0\n");

  ASSERT_TRUE(fields);
  EXPECT_EQ(*fields, (StatmFields{1389, 390, 311}));
}

TEST(ParseStatm, AZombieHasNothing) {
  const auto fields = parse_statm("0 0 0 0 0 0 0\n");

  ASSERT_TRUE(fields);
  EXPECT_EQ(*fields, StatmFields());
}

TEST(ParseStatm, RefusesATruncatedOrForeignLine) {
  for (const std::string_view text :
       {"", "1389 390", "1389 -1 311", "1389 390 x", "99999999999999999999999 1 1"}) {
    const auto fields = parse_statm(text);

    ASSERT_FALSE(fields) << text;
    EXPECT_EQ(fields.error().code, Errc::kMalformed);
  }
}

constexpr std::string_view kTrainer =
    "Name:\tpt_main_thread\n"
    "Umask:\t0022\n"
    "State:\tS (sleeping)\n"
    "Tgid:\t141495\n"
    "Ngid:\t0\n"
    "Pid:\t141495\n"
    "PPid:\t141490\n"
    "TracerPid:\t0\n"
    "Uid:\t1000\t1001\t1002\t1003\n"
    "Gid:\t1000\t1000\t1000\t1000\n"
    "FDSize:\t256\n"
    "Groups:\t4 24 27 1000 \n"
    "NStgid:\t141495\t77\n"
    "NSpid:\t141495\t77\n"
    "NSpgid:\t141490\t70\n"
    "NSsid:\t141400\t1\n"
    "VmPeak:\t21000000 kB\n"
    "VmSize:\t20000000 kB\n"
    "VmLck:\t       0 kB\n"
    "VmPin:\t       0 kB\n"
    "VmHWM:\t 2097152 kB\n"
    "VmRSS:\t 1048576 kB\n"
    "RssAnon:\t  900000 kB\n"
    "RssFile:\t  100000 kB\n"
    "RssShmem:\t   48576 kB\n"
    "VmData:\t 3000000 kB\n"
    "VmSwap:\t     512 kB\n"
    "HugetlbPages:\t       0 kB\n"
    "CoreDumping:\t0\n"
    "Threads:\t42\n"
    "SigQ:\t0/96343\n";

StatusFields parsed(std::string_view text) {
  auto fields = parse_status(text);
  EXPECT_TRUE(fields);
  return fields ? *fields : StatusFields{};
}

TEST(ParseStatus, ReadsIdentityAndTheSplitOfMemory) {
  const StatusFields fields = parsed(kTrainer);

  EXPECT_EQ(fields.comm, "pt_main_thread");
  EXPECT_EQ(fields.state, 'S');
  EXPECT_EQ(fields.ppid, 141490);
  EXPECT_EQ(fields.uid, 1001U);
  EXPECT_EQ(fields.innermost_pid, 77);
  EXPECT_EQ(fields.threads, 42U);
  EXPECT_EQ(fields.hwm_bytes, 2097152ULL * 1024);
  EXPECT_EQ(fields.rss_bytes, 1048576ULL * 1024);
  EXPECT_EQ(fields.rss_anon_bytes, 900000ULL * 1024);
  EXPECT_EQ(fields.rss_file_bytes, 100000ULL * 1024);
  EXPECT_EQ(fields.rss_shmem_bytes, 48576ULL * 1024);
  EXPECT_EQ(fields.swap_bytes, 512ULL * 1024);
}

TEST(ParseStatus, LeavesTheMemoryOfAZombieUnknown) {
  const StatusFields fields = parsed("Name:\tcc1plus\nState:\tZ (zombie)\nPPid:\t7\nThreads:\t1\n");

  EXPECT_EQ(fields.state, 'Z');
  EXPECT_EQ(fields.rss_bytes, std::nullopt);
  EXPECT_EQ(fields.swap_bytes, std::nullopt);
  EXPECT_EQ(fields.threads, 1U);
}

TEST(ParseStatus, UndoesTheEscapesInAName) {
  const StatusFields fields = parsed("Name:\ta\\nb\\\\n\\c\nState:\tR (running)\n");

  EXPECT_EQ(fields.comm, "a\nb\\n\\c");
}

TEST(ParseStatus, KeepsBlanksTabsAndCarriageReturnsOfAName) {
  const StatusFields fields = parsed("Name:\t \tx: 1 \r\nState:\tR (running)\n");

  EXPECT_EQ(fields.comm, " \tx: 1 \r");
}

TEST(ParseStatus, TakesNoOrdersFromAProcessName) {
  const StatusFields fields =
      parsed("Name:\tVmRSS:\t9 kB\\nVmRSS:\t9 kB\nState:\tR (running)\nVmRSS:\t5 kB\n");

  EXPECT_EQ(fields.rss_bytes, 5U * 1024);
}

TEST(ParseStatus, TreatsNumbersThatAreNoneOrTooLargeAsUnknown) {
  const StatusFields fields = parsed(
      "Name:\tx\nState:\tR\nVmRSS:\tmany kB\nVmHWM:\t99999999999999999999 kB\n"
      "RssAnon:\t18446744073709551615 kB\nNSpid:\t\nThreads:\t4294967296\n");

  EXPECT_EQ(fields.rss_bytes, std::nullopt);
  EXPECT_EQ(fields.hwm_bytes, std::nullopt);
  EXPECT_EQ(fields.rss_anon_bytes, std::nullopt);
  EXPECT_EQ(fields.innermost_pid, std::nullopt);
  EXPECT_EQ(fields.threads, std::nullopt);
}

TEST(ParseStatus, AcceptsATextThatIsCutAfterTheMemory) {
  const StatusFields fields = parsed(kTrainer.substr(0, kTrainer.find("VmData")));

  EXPECT_EQ(fields.rss_shmem_bytes, 48576ULL * 1024);
  EXPECT_EQ(fields.threads, std::nullopt);
}

TEST(ParseStatus, RefusesWhatIsNoStatus) {
  for (const std::string_view text : {"", "Name:\tx\n", "State:\tR\n", "garbage", ":\n:\n"}) {
    const auto fields = parse_status(text);

    ASSERT_FALSE(fields) << text;
    EXPECT_EQ(fields.error().code, Errc::kMalformed);
  }
}

}  // namespace
}  // namespace tidemark::monitor
