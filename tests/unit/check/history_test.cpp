// SPDX-License-Identifier: Apache-2.0
#include "check/history.h"

#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/words.h"
#include "common/io.h"
#include "tests/support/temp_tree.h"

namespace tidemark::check {
namespace {

using testing::HasSubstr;
using tests::TempTree;

HistoryRow row_of(double plateau_bytes, const std::string& commit) {
  HistoryRow row;
  row.time = "2026-11-16T12:00:00Z";
  row.commit = commit;
  row.check = "train";
  row.machine = "x86_64, 2 CPUs, 31.3 GiB";
  row.result = "pass";
  row.figures = {0.0, std::nullopt, plateau_bytes, plateau_bytes};
  row.seconds = 10.5;
  return row;
}

TEST(History, AppendsRowsBelowALineOfNames) {
  const TempTree folder;
  const std::string path = folder.path("h.csv");

  ASSERT_TRUE(append_history(path, row_of(1e9, "a")));
  ASSERT_TRUE(append_history(path, row_of(2e9, "b,\"c\"\n=1")));

  const auto text = read_file(path);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, testing::StartsWith("time,commit,check,machine,result,rate_bytes_per_s,"
                                         "rate_bytes_per_step,plateau_bytes,peak_bytes,seconds\n"));
  EXPECT_EQ(std::count(text->begin(), text->end(), '\n'), 3);
  const auto rows = read_history(path);
  ASSERT_TRUE(rows) << rows.error().what;
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[1].commit, "b,\"c\"\n=1");
  EXPECT_EQ((*rows)[1].figures.plateau_bytes, 2e9);
  EXPECT_EQ((*rows)[1].figures.rate_bytes_per_s, 0.0);
  EXPECT_FALSE((*rows)[1].figures.rate_bytes_per_step);
  EXPECT_EQ((*rows)[1].machine, "x86_64, 2 CPUs, 31.3 GiB");
}

TEST(History, ReadsBackWhatItWrote) {
  HistoryRow row = row_of(1e9, "'=\\n \\x4 \x01\xff\t");
  row.check = "a\\b";
  row.time = "";

  const auto rows = parse_history(history_file_text(std::vector{row}));

  ASSERT_TRUE(rows) << rows.error().what;
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ((*rows)[0].time, "");
  EXPECT_EQ((*rows)[0].commit, row.commit);
  EXPECT_EQ((*rows)[0].check, row.check);
  EXPECT_EQ((*rows)[0].seconds, 10.5);
}

TEST(History, OfNoFileIsEmpty) {
  const TempTree folder;
  const auto rows = read_history(folder.path("none.csv"));

  ASSERT_TRUE(rows);
  EXPECT_TRUE(rows->empty());
}

TEST(History, ALastLineWithoutAnEndIsNoPartOfTheNext) {
  const TempTree folder;
  const std::string path = folder.path("h.csv");
  const HistoryRow row = row_of(1e9, "first");
  const std::string whole = history_file_text(std::span(&row, 1));
  folder.write("h.csv", whole.substr(0, whole.size() - 1));

  ASSERT_TRUE(append_history(path, row_of(2e9, "second")));
  ASSERT_TRUE(append_history(path, row_of(3e9, "third")));
  const auto rows = read_history(path);

  ASSERT_TRUE(rows) << rows.error().what;
  ASSERT_EQ(rows->size(), 3U);
  EXPECT_EQ((*rows)[1].commit, "second");
  EXPECT_EQ((*rows)[0].seconds, row.seconds);
}

TEST(History, FindsColumnsByTheirNamesAndLeavesOthersAlone) {
  const auto rows = parse_history("mine,plateau_bytes,check\r\nx,5,train\r\n\r\n");

  ASSERT_TRUE(rows) << rows.error().what;
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ((*rows)[0].check, "train");
  EXPECT_EQ((*rows)[0].figures.plateau_bytes, 5.0);
}

TEST(History, NamesTheLineThatIsWrong) {
  const auto error = [](const std::string& text) {
    const auto rows = parse_history(text);
    EXPECT_FALSE(rows) << text;
    return rows ? "" : rows.error().what;
  };
  EXPECT_THAT(error("a,b\n1,2\n"), HasSubstr("line 1"));
  EXPECT_THAT(error("check,plateau_bytes\nx,1\nx,many\n"), HasSubstr("line 3"));
  EXPECT_THAT(error("check,plateau_bytes\n\"x,1\n"), HasSubstr("line 2: quotes"));
}

TEST(History, TellsWithWhichCommitALevelRose) {
  std::vector<HistoryRow> rows;
  for (int i = 0; i < 8; ++i) {
    rows.push_back(row_of(i < 5 ? 1e9 : 1.5e9, "commit" + std::to_string(i)));
    rows.push_back(row_of(7e9, "other"));
    rows.back().check = "eval";
    rows.push_back(row_of(i * 1e9, "elsewhere"));
    rows.back().machine = "arm";
  }

  const auto changes = history_changes(rows, "train", rows[0].machine);

  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].what, "plateau");
  EXPECT_EQ(changes[0].commit, "commit5");
  EXPECT_EQ(changes[1].what, "peak");
  EXPECT_EQ(history_text(changes[0]),
            "plateau rose from 954 MiB to 1.40 GiB with commit5 (2026-11-16T12:00:00Z)");
  EXPECT_TRUE(history_changes(rows, "eval", rows[0].machine).empty());
}

TEST(History, TellsSinceWhenItLeaks) {
  std::vector<HistoryRow> rows;
  for (int i = 0; i < 8; ++i) {
    rows.push_back(row_of(1e9, "c" + std::to_string(i)));
    rows.back().figures.rate_bytes_per_step = i < 5 ? 0.0 : 1048576.0;
    rows.back().figures.rate_bytes_per_s = i < 5 ? 0.0 : 2097152.0;
  }

  const auto changes = history_changes(rows, "train", rows[0].machine);

  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(history_text(changes[0]),
            "growth rose from 0 B/1000 steps to 1.00 MiB/step with c5 (2026-11-16T12:00:00Z)");
}

TEST(History, WritesTimesOfTheWholeWorld) {
  EXPECT_EQ(utc_time_text(1'700'000'000'000'000'000), "2023-11-14T22:13:20Z");
}

}  // namespace
}  // namespace tidemark::check
