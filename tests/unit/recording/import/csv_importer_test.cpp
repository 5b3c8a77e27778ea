// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/units.h"
#include "tests/unit/recording/import/import_text.h"

namespace tidemark::recording {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string rows(std::string_view header, int count) {
  std::string text = std::string(header) + "\n";
  for (int i = 0; i < count; ++i) {
    text += fmt::format("{},100\n", i);
  }
  return text;
}

std::vector<std::uint64_t> tree_mib(const tests::MemorySink& run) {
  std::vector<std::uint64_t> all;
  for (const Tick& tick : run.ticks) {
    all.push_back(tick.tree.rss_bytes / kMiB);
  }
  return all;
}

TEST(CsvImporter, ReadsOneSeriesAsTheTrainer) {
  const Imported imported = import_text("t_s,rss_mb\n0,100\n0.5,101.5\n1,103\n");

  EXPECT_EQ(imported.error, "");
  EXPECT_THAT(times(imported.run), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(rss_mib(imported.run), ElementsAre(100, 101.5, 103));
  EXPECT_EQ(imported.run.calls, "bttte");
  EXPECT_EQ(imported.run.info.format, "csv");
  EXPECT_FALSE(imported.run.info.time_is_steps);
  ASSERT_EQ(imported.run.ticks[0].new_processes.size(), 1U);
  EXPECT_EQ(imported.run.ticks[0].new_processes[0].role, Role::kTrainer);
  EXPECT_EQ(imported.run.ticks[0].new_processes[0].key, ProcessKey{});
  EXPECT_EQ(imported.summary.ticks, 3U);
  EXPECT_EQ(imported.summary.lines, 3U);
}

TEST(CsvImporter, GroupsTheProcessesOfOneTimeIntoOneTick) {
  const Imported imported = import_text(
      "time,pid,ppid,comm,role,rss_kb,pss_kb\n"
      "1,10,1,python3,main,2048,1024\n"
      "1,11,10,python3,compile_worker,1024,512\n"
      "2,10,1,python3,main,4096,1024\n");

  ASSERT_EQ(imported.run.ticks.size(), 2U);
  const Tick& first = imported.run.ticks[0];
  ASSERT_EQ(first.processes.size(), 2U);
  EXPECT_EQ(first.processes[1].key, (ProcessKey{11, 0}));
  EXPECT_EQ(first.processes[1].rss_bytes, kMiB);
  EXPECT_EQ(first.tree.processes, 2U);
  EXPECT_EQ(first.tree.rss_bytes, 3 * kMiB);
  EXPECT_EQ(first.tree.pss_bytes, 1536U * 1024);
  ASSERT_EQ(first.roles.size(), 2U);
  EXPECT_EQ(first.roles[0].role, Role::kTrainer);
  EXPECT_EQ(first.roles[1].role, Role::kCompileWorker);
  EXPECT_EQ(first.roles[1].sum.rss_bytes, kMiB);
  EXPECT_EQ(first.new_processes[1].ppid, 10);
  EXPECT_TRUE(imported.run.ticks[1].new_processes.empty());
}

TEST(CsvImporter, BeginsANewTickWhenAProcessComesTwiceAtOnce) {
  const Imported imported = import_text("t,pid,rss_mb\n1,7,1\n1,8,1\n1,7,2\n1,8,2\n");

  EXPECT_THAT(times(imported.run), ElementsAre(1, 1));
  EXPECT_THAT(rss_mib(imported.run), ElementsAre(1, 2));
  EXPECT_EQ(imported.summary.bad_lines, 0U);
}

TEST(CsvImporter, TakesRowsWithTimesOfTheirOwnForOneLook) {
  std::string text = "t_s,pid,rss_mb\n";
  for (int i = 0; i < 4; ++i) {
    text += fmt::format("{0}.001,1,100\n{0}.003,2,50\n{0}.020,3,10\n", i);
  }

  const Imported imported = import_text(text);

  EXPECT_THAT(times(imported.run), ElementsAre(0.001, 1.001, 2.001, 3.001));
  EXPECT_THAT(tree_mib(imported.run), ElementsAre(160, 160, 160, 160));
  EXPECT_THAT(imported.summary.notes, ElementsAre(HasSubstr("times of their own")));
}

TEST(CsvImporter, TakesRowsAfterAPauseForAnotherLook) {
  const Imported imported = import_text(
      "t_s,pid,rss_mb\n"
      "0,1,100\n1,2,50\n"           // one has ended before the other began
      "2,2,50\n3,3,10\n3,2,50\n");  // the newborn is first

  EXPECT_THAT(times(imported.run), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(tree_mib(imported.run), ElementsAre(100, 50, 50, 60));
  EXPECT_THAT(imported.summary.notes, IsEmpty());
}

TEST(CsvImporter, TellsSeriesApartByNameWhenThereAreNoPids) {
  const Imported imported = import_text("t,name,rss_mb\n0,a,1\n0,b,2\n1,a,3\n1,b,4\n");

  ASSERT_EQ(imported.run.ticks.size(), 2U);
  ASSERT_EQ(imported.run.ticks[0].new_processes.size(), 2U);
  EXPECT_EQ(imported.run.ticks[0].new_processes[1].comm, "b");
  EXPECT_NE(imported.run.ticks[0].processes[0].key, imported.run.ticks[0].processes[1].key);
  EXPECT_EQ(imported.run.ticks[1].processes[0].key, imported.run.ticks[0].processes[0].key);
}

TEST(CsvImporter, IntroducesAProcessAgainWhenItsNameChanges) {
  const Imported imported = import_text("t,pid,comm,rss_mb\n0,7,bash,1\n1,7,python3,2\n");

  ASSERT_EQ(imported.run.ticks[1].new_processes.size(), 1U);
  EXPECT_EQ(imported.run.ticks[1].new_processes[0].comm, "python3");
}

// Each unit of the header, and the bytes of the value 3 in it.
struct UnitCase {
  std::string header;
  std::uint64_t bytes;
};
class CsvUnit : public testing::TestWithParam<UnitCase> {};
TEST_P(CsvUnit, IsTheEndOfTheColumnName) {
  const Imported imported = import_text("t_s," + GetParam().header + "\n0,3\n");

  ASSERT_EQ(imported.error, "");
  EXPECT_EQ(imported.run.ticks[0].processes[0].rss_bytes, GetParam().bytes);
}
INSTANTIATE_TEST_SUITE_P(
    All, CsvUnit,
    testing::Values(UnitCase{"rss_bytes", 3}, UnitCase{"rss_kb", 3072}, UnitCase{"rss_kib", 3072},
                    UnitCase{"rss_mb", 3 * kMiB}, UnitCase{"rss_mib", 3 * kMiB},
                    UnitCase{"RSS (MB)", 3 * kMiB}, UnitCase{"Memory [MiB]", 3 * kMiB},
                    UnitCase{"mem_mb", 3 * kMiB}, UnitCase{"memory_gb", 3072 * kMiB},
                    UnitCase{"rss_gb", 3072 * kMiB}, UnitCase{"mem_real", 3 * kMiB},
                    UnitCase{"\"rss_kb\"", 3072}));

TEST(CsvImporter, TakesAnUnnamedUnitFromTheFirstValueAndSaysSo) {
  const Imported bytes = import_text("t_s,rss\n0,104857600\n1,50\n");
  const Imported mib = import_text("t_s,mem\n0,512.5\n1,104857600\n");

  EXPECT_THAT(rss_mib(bytes.run), ElementsAre(100, testing::DoubleNear(0, 1e-4)));
  EXPECT_THAT(bytes.summary.notes, ElementsAre("column 'rss' names no unit: taken as bytes"));
  EXPECT_THAT(rss_mib(mib.run), ElementsAre(512.5, 104857600));
  EXPECT_THAT(mib.summary.notes, ElementsAre("column 'mem' names no unit: taken as MiB"));
}

TEST(CsvImporter, ReadsEverySplitOfMemory) {
  const Imported imported = import_text(
      "t_s,rss_bytes,rss_anon_bytes,rss_file_bytes,rss_shmem_bytes,swap_bytes,hwm_bytes,pss_bytes,"
      "pss_footprint_bytes,uss_bytes,pss_age_s,threads,state,step,epoch\n"
      "0,1,2,3,4,5,6,7,8,9,0.5,11,S,12,13\n");

  ASSERT_EQ(imported.error, "");
  const Tick& tick = imported.run.ticks[0];
  const ProcessSample& sample = tick.processes[0];
  EXPECT_EQ(sample.rss_bytes, 1U);
  EXPECT_EQ(sample.rss_anon_bytes, 2U);
  EXPECT_EQ(sample.rss_file_bytes, 3U);
  EXPECT_EQ(sample.rss_shmem_bytes, 4U);
  EXPECT_EQ(sample.swap_bytes, 5U);
  EXPECT_EQ(sample.hwm_bytes, 6U);
  EXPECT_EQ(sample.pss_bytes, 7U);
  EXPECT_EQ(sample.pss_footprint_bytes, 8U);
  EXPECT_EQ(sample.uss_bytes, 9U);
  EXPECT_EQ(sample.pss_age_s, 0.5);
  EXPECT_EQ(sample.threads, 11U);
  EXPECT_EQ(sample.state, 'S');
  EXPECT_EQ(tick.step, 12);
  EXPECT_EQ(tick.epoch, 13);
  ASSERT_EQ(tick.markers.size(), 1U);
  EXPECT_EQ(tick.markers[0].kind, MarkerKind::kEpoch);
  EXPECT_EQ(tick.tree.footprint_bytes, 2U + 4 + 5);
}

TEST(CsvImporter, KeepsAFootprintWithoutItsParts) {
  const Imported imported = import_text("t_s,footprint_mb,swap_mb\n0,10,3\n");

  const ProcessSample& sample = imported.run.ticks.at(0).processes[0];
  EXPECT_EQ(sample.footprint_bytes(), 10 * kMiB);
  EXPECT_EQ(sample.rss_bytes, std::nullopt);
}

TEST(CsvImporter, TakesStepsForTimeWhenThereIsNoTime) {
  const Imported imported = import_text("step,rss_mb\n10,1\n20,2\n");

  EXPECT_TRUE(imported.run.info.time_is_steps);
  EXPECT_THAT(times(imported.run), ElementsAre(10, 20));
  EXPECT_EQ(imported.run.ticks[1].step, 20);
}

TEST(CsvImporter, CountsDatesFromTheFirst) {
  const Imported numbers = import_text("timestamp,rss_mb\n1700000000.5,1\n1700000002,2\n");
  const Imported milliseconds = import_text("timestamp,rss_mb\n1700000000500,1\n1700000002000,2\n");
  const Imported iso = import_text(
      "timestamp,rss_mb\n2023-11-14T22:13:20.5Z,1\n\"2023-11-14 23:13:22,0+01:00\",2\n");

  for (const Imported* imported : {&numbers, &milliseconds, &iso}) {
    EXPECT_EQ(imported->error, "");
    EXPECT_THAT(times(imported->run), ElementsAre(0, 1.5));
    EXPECT_EQ(imported->run.info.start_wall_ns, 1'700'000'000'500'000'000);
  }
}

TEST(CsvImporter, ReadsEverySeparator) {
  for (const char* text :
       {"t_s;rss_mb\n0;1,5\n", "t_s\trss_mb\n0\t1.5\n", "t_s, rss_mb\n0 , 1.5 \n"}) {
    EXPECT_THAT(rss_mib(import_text(text).run), ElementsAre(1.5)) << text;
  }
}

TEST(CsvImporter, ReadsQuotedFields) {
  const Imported imported =
      import_text("t_s,comm,rss_mb\n0,\"a, \"\"b\"\"\",1\n1,\"a, \"\"b\"\"\",\"2\"\n");

  EXPECT_EQ(imported.run.ticks.at(0).new_processes[0].comm, "a, \"b\"");
  EXPECT_TRUE(imported.run.ticks.at(1).new_processes.empty());
  EXPECT_THAT(rss_mib(imported.run), ElementsAre(1, 2));
}

TEST(CsvImporter, IgnoresByteOrderMarkCarriageReturnsCommentsAndEmptyLines) {
  const Imported imported = import_text(
      "\xEF\xBB\xBF# made by hand\r\n\r\nT_S,RSS_MB,other\r\n0,1,x\r\n\r\n# pause\r\n1,2,y");

  EXPECT_EQ(imported.error, "");
  EXPECT_EQ(imported.summary.bad_lines, 0U);
  EXPECT_THAT(rss_mib(imported.run), ElementsAre(1, 2));
}

TEST(CsvImporter, TakesEmptyAndNanAsUnknown) {
  const Imported imported = import_text("t_s,rss_mb,pss_mb\n0,,1\n1,nan,1\n2,None,1\n");

  EXPECT_EQ(imported.summary.bad_lines, 0U);
  EXPECT_THAT(rss_mib(imported.run), ElementsAre(-1, -1, -1));
}

TEST(CsvImporter, ReadsWholeNumbersThatPandasWroteAsFractions) {
  const Imported imported = import_text("t_s,pid,rss_mb\n0,12.0,1\n");

  EXPECT_EQ(imported.run.ticks.at(0).processes[0].key.pid, 12);
}

// Each line is bad, for its own reason.
struct BadCase {
  std::string line;
  std::string reason;
};
class CsvBadLine : public testing::TestWithParam<BadCase> {};
TEST_P(CsvBadLine, IsSkippedAndCountedWithItsReason) {
  const Imported imported =
      import_text("t_s,pid,rss_mb\n5,1,100\n" + GetParam().line + "\n6,1,101\n");

  EXPECT_EQ(imported.error, "");
  EXPECT_THAT(times(imported.run), ElementsAre(5, 6));
  EXPECT_EQ(imported.summary.bad_lines, 1U);
  EXPECT_EQ(imported.summary.first_bad_line, 3U);
  EXPECT_THAT(imported.summary.first_bad_reason, HasSubstr(GetParam().reason));
  ASSERT_EQ(imported.run.ticks[0].losses.size(), 1U);
  EXPECT_EQ(imported.run.ticks[0].losses[0].what.text(), "bad_lines");
  EXPECT_EQ(imported.run.ticks[0].losses[0].count, 1U);
}
INSTANTIATE_TEST_SUITE_P(
    All, CsvBadLine,
    testing::Values(BadCase{"4,1,100", "before that of the row above"},
                    BadCase{"-1,1,100", "negative"}, BadCase{"nan,1,100", "not a number"},
                    BadCase{",1,100", "not a number or a date"}, BadCase{"6,1,-5", "negative"},
                    BadCase{"6,1,inf", "not a number"}, BadCase{"6,1,1e300", "impossibly large"},
                    BadCase{"6,1,12abc", "not a number"}, BadCase{"6,1", "as many fields"},
                    BadCase{"6,1,2,3", "as many fields"}, BadCase{"6,,2", "no pid"},
                    BadCase{"6,1.5,2", "whole number"}, BadCase{"6,-3,2", "whole number"},
                    BadCase{"6,99999999999,2", "whole number"}, BadCase{"6,1,\"2", "quotes"},
                    BadCase{"6,1,\"2\"x", "quotes"},
                    BadCase{std::string("6,1,1\0", 6), "not a number"},
                    BadCase{std::string(200'000, 'x'), "too long"}));

TEST(CsvImporter, StopsAtTooManyBadLinesAndNamesTheLine) {
  std::string text = "t_s,rss_mb\n0,1\n";
  for (int i = 0; i < 11; ++i) {
    text += "oops,1\n";
  }

  const Imported imported = import_text(text);

  EXPECT_EQ(imported.code, Errc::kMalformed);
  EXPECT_EQ(imported.error,
            "log: line 13: its time is not a number or a date; 11 of 12 lines could not be used "
            "(the first: line 3, its time is not a number or a date)");
}

TEST(CsvImporter, AllowsOnePercentOfBadLines) {
  std::string text = rows("t_s,rss_mb", 2000);
  for (int i = 0; i < 20; ++i) {
    text += "oops,1\n";
  }

  EXPECT_EQ(import_text(text).error, "");
  EXPECT_NE(import_text(text + "oops,1\n").error, "");
}

TEST(CsvImporter, NamesWhatTheHeaderLacks) {
  EXPECT_EQ(import_text("a,rss_mb\n1,2\n").error,
            "log: found no column for the time in the header 'a,rss_mb'; name it t_s, time, "
            "timestamp, elapsed or step");
  EXPECT_EQ(import_text("t_s,%mem\n1,2\n").error,
            "log: found no column for the memory in the header 't_s,%mem'; name it rss_bytes, "
            "rss_kb, rss_mb, pss_mb, memory_mb or the like");
}

TEST(CsvImporter, RefusesAFileWithoutRows) {
  EXPECT_EQ(import_text("t_s,rss_mb\n").error, "log holds no samples");
}

TEST(CsvImporter, NotesARoleThatItDoesNotKnow) {
  const Imported imported = import_text("t_s,pid,role,rss_mb\n0,1,boss\x1b,1\n");

  EXPECT_EQ(imported.run.ticks.at(0).new_processes[0].role, Role::kOther);
  EXPECT_THAT(imported.summary.notes, ElementsAre("role 'boss\\x1b' is unknown: taken as other"));
}

TEST(CsvImporter, PrefersTheMoreExactOfTwoMemoryColumns) {
  const Imported imported = import_text("t_s,value,rss_mb\n0,7,1\n");

  EXPECT_THAT(rss_mib(imported.run), ElementsAre(1));
}

TEST(CsvImporter, TakesSumsFromRowsOfTheirOwn) {
  const Imported imported = import_text(
      "t_s,scope,pid,role,processes,rss_bytes,footprint_bytes\n"
      "0,process,5,trainer,,100,\n"
      "0,role,,trainer,1,100,60\n"
      "0,tree,,,1,100,70\n");

  ASSERT_EQ(imported.run.ticks.size(), 1U);
  EXPECT_EQ(imported.run.ticks[0].tree.footprint_bytes, 70U);
  EXPECT_EQ(imported.run.ticks[0].tree.processes, 1U);
  ASSERT_EQ(imported.run.ticks[0].roles.size(), 1U);
  EXPECT_EQ(imported.run.ticks[0].roles[0].sum.footprint_bytes, 60U);
  EXPECT_EQ(imported.run.ticks[0].processes.size(), 1U);
}

TEST(CsvImporter, RefusesMoreProcessesThanAJobHas) {
  std::string text = "t_s,pid,rss_mb\n";
  for (int pid = 1; pid <= 100'001; ++pid) {
    text += fmt::format("{},{},1\n", pid / 100, pid);
  }

  EXPECT_THAT(import_text(text).error, HasSubstr("more than 100000 processes; is the column"));
}

}  // namespace
}  // namespace tidemark::recording
