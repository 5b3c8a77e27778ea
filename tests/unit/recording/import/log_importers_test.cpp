// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/recording/import/import_text.h"

namespace tidemark::recording {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(MprofImporter, ReadsMemoryInMibAgainstTheFirstTime) {
  const Imported imported = import_text(
      "CMDLINE python train.py --epochs 3\n"
      "MEM 1.500000 1700000000.0000\n"
      "MEM 2.250000 1700000000.1003\n");

  EXPECT_EQ(imported.error, "");
  EXPECT_EQ(imported.run.info.format, "mprof");
  EXPECT_EQ(imported.run.info.command, "python train.py --epochs 3");
  EXPECT_EQ(imported.run.info.start_wall_ns, 1'700'000'000'000'000'000);
  EXPECT_THAT(times(imported.run), ElementsAre(0, DoubleNear(0.1003, 1e-6)));
  EXPECT_THAT(rss_mib(imported.run), ElementsAre(1.5, 2.25));
  EXPECT_EQ(imported.run.ticks[0].new_processes.at(0).role, Role::kTrainer);
}

TEST(MprofImporter, MakesAProcessOfEachChild) {
  const Imported imported = import_text(
      "MEM 10 100.0\nCHLD 0 1 100.01\nCHLD 4711 2 100.02\n"
      "MEM 11 101.0\nCHLD 0 3 101.01\nCHLD1 5 101.02\n");

  EXPECT_EQ(imported.error, "");
  ASSERT_EQ(imported.run.ticks.size(), 2U);
  EXPECT_EQ(imported.run.ticks[0].processes.size(), 3U);
  EXPECT_EQ(imported.run.ticks[0].tree.rss_bytes, 13U << 20U);
  EXPECT_EQ(imported.run.ticks[0].new_processes.at(2).key.pid, 4711);
  EXPECT_EQ(imported.run.ticks[1].processes.at(1).key, imported.run.ticks[0].processes.at(1).key);
  EXPECT_EQ(imported.run.ticks[1].processes.at(2).key.pid, 1);
  EXPECT_THAT(imported.summary.notes, ElementsAre(HasSubstr("--include-children")));
}

TEST(MprofImporter, TurnsFunctionsIntoPhases) {
  const Imported imported =
      import_text("MEM 1 100.0\nMEM 2 103.0\nFUNC train.step 1.0 101.0 2.0 102.5 0\n");

  ASSERT_EQ(imported.run.ticks.at(1).markers.size(), 2U);
  const MarkerRecord& begin = imported.run.ticks[1].markers[0];
  const MarkerRecord& end = imported.run.ticks[1].markers[1];
  EXPECT_EQ(begin.kind, MarkerKind::kPhaseBegin);
  EXPECT_EQ(begin.name, "train.step");
  EXPECT_EQ(begin.t_s, 101.0);
  EXPECT_EQ(end.kind, MarkerKind::kPhaseEnd);
  EXPECT_EQ(end.t_s, 102.5);
}

TEST(MprofImporter, SkipsWhatItCannotUse) {
  const Imported imported = import_text(
      "CHLD 0 1 99.0\nMEM -1 100.0\nMEM 1 100.0\nMEM 2 99.0\nMEM 2\nWHAT 3 4\nMEM nan 101\n"
      "CHLD 0 1 100.1\nCHLD 0 1 100.1\nMEM 3 102.0\n");

  EXPECT_EQ(imported.error, "");
  EXPECT_THAT(rss_mib(imported.run), ElementsAre(1, 3));
  EXPECT_EQ(imported.summary.bad_lines, 7U);
  EXPECT_EQ(imported.summary.first_bad_line, 1U);
  EXPECT_EQ(imported.summary.first_bad_reason, "a CHLD line comes before the first MEM line");
}

TEST(MprofImporter, RefusesAFileWithoutSamples) {
  EXPECT_EQ(import_text("CMDLINE python x.py\n").error, "log holds no samples");
}

TEST(PsrecordImporter, ReadsElapsedTimeAndRealMemory) {
  const Imported imported = import_text(
      "# Elapsed time   CPU (%)     Real (MB)   Virtual (MB)\n"
      "       0.000        0.000       11.250       14.680\n"
      "       5.018       58.400      500.500     7570.797\n");

  EXPECT_EQ(imported.error, "");
  EXPECT_EQ(imported.run.info.format, "psrecord");
  EXPECT_THAT(times(imported.run), ElementsAre(0, 5.018));
  EXPECT_THAT(rss_mib(imported.run), ElementsAre(11.25, 500.5));
}

TEST(PsrecordImporter, FindsItsColumnsInNewerAndPatchedLogs) {
  const Imported with_swap = import_text(
      "# Elapsed time   CPU (%)     Real (MB)   Virtual (MB)   Swap (MB)  \n"
      "       1.000        0.000       10.000       14.680       2.000\n");
  const Imported with_date = import_text(
      "#  Timestamp   Elapsed time   CPU (%)     Real (MB)   Virtual (MB)\n"
      "1716033718.286        1.000        0.000      338.000  3284499.703\n");

  EXPECT_THAT(rss_mib(with_swap.run), ElementsAre(10));
  EXPECT_EQ(with_swap.run.ticks.at(0).processes[0].swap_bytes, 2U << 20U);
  EXPECT_THAT(times(with_date.run), ElementsAre(1));
  EXPECT_THAT(rss_mib(with_date.run), ElementsAre(338));
}

TEST(PsrecordImporter, SkipsWhatItCannotUse) {
  const Imported imported = import_text(
      "# Elapsed time   CPU (%)     Real (MB)   Virtual (MB)\n"
      "1 0 10 0\n0.5 0 11 0\n2 0 -1 0\n3 0 x 0\n4 0 12\n5 0 13 0\n");

  EXPECT_THAT(rss_mib(imported.run), ElementsAre(10, 13));
  EXPECT_EQ(imported.summary.bad_lines, 4U);
  EXPECT_EQ(imported.summary.first_bad_line, 3U);
}

TEST(PsrecordImporter, ReadsItsCsvFlavourAsCsv) {
  const Imported imported =
      import_text("elapsed_time,nproc,cpu,mem_real,mem_virtual,mem_swap\n0.5,2,10,100,200,3\n");

  EXPECT_EQ(imported.run.info.format, "csv");
  EXPECT_THAT(rss_mib(imported.run), ElementsAre(100));
  EXPECT_EQ(imported.run.ticks.at(0).processes[0].swap_bytes, 3U << 20U);
}

TEST(JsonSeries, ReadsOneSeriesOverSteps) {
  const Imported imported =
      import_text(R"({"series":[{"id":"a","unit":"steps","x":[10,20,30],"y_mb":[1,2.5,3]}]})");

  EXPECT_EQ(imported.error, "");
  EXPECT_EQ(imported.run.info.format, "json-series");
  EXPECT_TRUE(imported.run.info.time_is_steps);
  EXPECT_THAT(times(imported.run), ElementsAre(10, 20, 30));
  EXPECT_THAT(rss_mib(imported.run), ElementsAre(1, 2.5, 3));
  EXPECT_EQ(imported.run.ticks[1].step, 20);
  EXPECT_EQ(imported.run.ticks[0].new_processes.at(0).comm, "a");
  EXPECT_EQ(imported.run.ticks[0].new_processes.at(0).role, Role::kTrainer);
}

TEST(JsonSeries, KnowsUnitsOfTimeAndTakesOthersForSteps) {
  const Imported minutes = import_text(R"({"unit":"minutes","x":[0,30],"y_mb":[1,2]})");
  const Imported batches = import_text(R"([{"unit":"batches","x":[0,30],"y_mb":[1,2]}])");

  EXPECT_THAT(times(minutes.run), ElementsAre(0, 1800));
  EXPECT_FALSE(minutes.run.info.time_is_steps);
  EXPECT_THAT(times(batches.run), ElementsAre(0, 30));
  EXPECT_TRUE(batches.run.info.time_is_steps);
}

TEST(JsonSeries, MergesSeriesOfOneKindByTheirX) {
  const Imported imported = import_text(
      R"([{"id":"a","unit":"steps","x":[1,2],"y_mb":[1,2]},{"id":"b","unit":"iterations","x":[2,3],"y_mb":[5,6]}])");

  EXPECT_THAT(times(imported.run), ElementsAre(1, 2, 3));
  ASSERT_EQ(imported.run.ticks.at(1).processes.size(), 2U);
  EXPECT_EQ(imported.run.ticks[1].new_processes.at(0).comm, "b");
  EXPECT_NE(imported.run.ticks[1].processes[0].key, imported.run.ticks[1].processes[1].key);
}

TEST(JsonSeries, WantsAChoiceBetweenTimeAndSteps) {
  const Imported imported = import_text(
      R"([{"id":"a","unit":"steps","x":[1],"y_mb":[1]},{"id":"b","unit":"seconds","x":[2],"y_mb":[5]}])");

  EXPECT_EQ(imported.code, Errc::kUsage);
  EXPECT_EQ(imported.error,
            "log holds series over time and series over steps, which cannot be read together; "
            "choose one as log#ID: a, b");
}

TEST(JsonSeries, PicksOneByItsId) {
  const tests::TempTree dir;
  dir.write("s.json", R"([{"id":"a","unit":"steps","x":[1],"y_mb":[1]},
                          {"id":"b","unit":"seconds","x":[2],"y_mb":[5]}])");

  const Imported imported = import_file(dir.path("s.json#b"));
  const Imported missing = import_file(dir.path("s.json#c"));

  EXPECT_THAT(times(imported.run), ElementsAre(2));
  EXPECT_EQ(missing.code, Errc::kNotFound);
  EXPECT_THAT(missing.error, HasSubstr("has no series 'c'; it has a, b"));
}

TEST(JsonSeries, ReadsTheRealSeries) {
  const std::string path = TIDEMARK_SOURCE_DIR "/tests/fixtures/series/real_series.json";

  const Imported imported = import_file(path + "#mg_prod_run2");

  EXPECT_EQ(imported.error, "");
  EXPECT_EQ(imported.summary.ticks, 24U);
  EXPECT_EQ(imported.run.ticks.back().step, 240);
  EXPECT_THAT(rss_mib(imported.run), testing::Contains(17694));
}

TEST(JsonSeries, SkipsPointsThatAreNoNumbers) {
  const Imported imported =
      import_text(R"({"unit":"s","x":[0,1,2,1.5,4],"y_mb":[1,null,"x",3,-4]})");

  EXPECT_THAT(rss_mib(imported.run), ElementsAre(1, 3));
  EXPECT_EQ(imported.summary.bad_lines, 3U);
  EXPECT_EQ(imported.summary.first_bad_line, 2U);
}

TEST(JsonSeries, SaysWhatIsWrongWithAFile) {
  EXPECT_THAT(import_text("{\"kind\":\"tick\"}\n{\"kind\":\"tick\"}\n").error,
              HasSubstr("record with -o FILE"));
  EXPECT_EQ(import_text("{\"series\":[]}").error, "log is JSON, but holds no series");
  EXPECT_EQ(import_text("[1]").error, "log: series 'series 1' is not an object");
  EXPECT_EQ(import_text(R"([{"id":"a"}])").error, "log: series 'a' has no list 'x'");
  EXPECT_EQ(import_text(R"([{"id":"a","x":[1]}])").error,
            "log: series 'a' has no list 'y_mb' (or y_bytes, y_kb, y_gb)");
  EXPECT_EQ(import_text(R"([{"id":"a","x":[1],"y_mb":[1,2]}])").error,
            "log: series 'a' has 1 values in 'x' but 2 in 'y_mb'");
}

}  // namespace
}  // namespace tidemark::recording
