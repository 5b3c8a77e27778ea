// SPDX-License-Identifier: Apache-2.0
// docs/run-file.md: its queries work, and its table of tables is the schema.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/io.h"
#include "recording/run_writer.h"
#include "recording/schema.h"
#include "recording/sqlite.h"
#include "tests/support/sample_run.h"
#include "tests/support/temp_tree.h"

namespace tidemark::recording {
namespace {

std::string page() {
  auto text = read_file(TIDEMARK_SOURCE_DIR "/docs/run-file.md");
  EXPECT_TRUE(text);
  return text ? *text : "";
}

std::vector<std::string> sql_blocks(const std::string& text) {
  constexpr std::string_view kStart = "```sql\n";
  std::vector<std::string> blocks;
  for (std::size_t at = text.find(kStart); at != std::string::npos; at = text.find(kStart, at)) {
    at += kStart.size();
    blocks.push_back(text.substr(at, text.find("```", at) - at));
  }
  return blocks;
}

class RunFilePage : public testing::Test {
 protected:
  RunFilePage() {
    auto writer = RunWriter::create(dir_.path("run"));
    EXPECT_TRUE(writer && (*writer)->begin(tests::full_run_info()));
    EXPECT_TRUE((*writer)->add(tests::full_tick()));
    for (std::uint64_t n = 2; n < 200; ++n) {
      EXPECT_TRUE((*writer)->add(tests::plain_tick(n)));
    }
    EXPECT_TRUE((*writer)->end(200.0));
  }

  Database open() {
    return std::move(*Database::open(dir_.path("run"), Database::Mode::kReadOnly));
  }

  tests::TempTree dir_;
};

TEST_F(RunFilePage, HasQueriesThatWork) {
  Database database = open();
  const auto blocks = sql_blocks(page());

  ASSERT_EQ(blocks.size(), 4U);
  for (const std::string& sql : blocks) {
    auto query = database.prepare(sql);
    ASSERT_TRUE(query) << query.error().what << "\n" << sql;
    const auto row = query->step();
    ASSERT_TRUE(row) << row.error().what << "\n" << sql;
    EXPECT_TRUE(*row) << "no rows: " << sql;
  }
}

TEST_F(RunFilePage, ShowsTheGrowthOfTheSample) {
  Database database = open();

  auto query = database.prepare(sql_blocks(page()).at(0));

  ASSERT_TRUE(query);
  ASSERT_TRUE(*query->step());  // minute 0 begins with the tick of 2.5 MB
  ASSERT_TRUE(*query->step());
  EXPECT_EQ(query->integer(0), 1);
  EXPECT_EQ(query->integer(2), (5'000'000 + 60 * 1'000'000) / 1048576);
  EXPECT_EQ(query->integer(3), (5'000'000 + 119 * 1'000'000) / 1048576);
}

TEST_F(RunFilePage, NamesEveryTableAndColumn) {
  Database database = open();
  const std::string text = page();

  for (const Table& table : tables()) {
    const std::string name(table.name);
    const std::size_t start = text.find("| `" + name + "` |");
    ASSERT_NE(start, std::string::npos) << name;
    const std::string row = text.substr(start, text.find('\n', start) - start);
    auto columns = database.prepare("SELECT name FROM pragma_table_info('" + name + "')");
    ASSERT_TRUE(columns);
    while (*columns->step()) {
      const std::string column(columns->bytes(0));
      if (column != "id") {  // of the only row of `run`
        EXPECT_THAT(row, testing::HasSubstr("`" + column + "`")) << name;
      }
    }
  }
}

TEST_F(RunFilePage, NamesTheVersionAndTheApplication) {
  Database database = open();

  EXPECT_EQ(*database.query_integer("PRAGMA application_id"), kApplicationId);
  EXPECT_EQ(*database.query_integer("PRAGMA user_version"), kSchemaVersion);
  EXPECT_THAT(page(), testing::HasSubstr(std::to_string(kApplicationId)));
  EXPECT_THAT(page(), testing::HasSubstr("**" + std::to_string(kSchemaVersion) + "**"));
}

}  // namespace
}  // namespace tidemark::recording
