// SPDX-License-Identifier: Apache-2.0
// The lists of common/record_fields.h and the run file that is made from them.
#include "common/record_fields.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recording/run_reader.h"
#include "recording/run_writer.h"
#include "recording/schema.h"
#include "tests/support/filled_records.h"
#include "tests/support/golden.h"
#include "tests/support/memory_sink.h"
#include "tests/support/record_text.h"
#include "tests/support/temp_tree.h"

namespace tidemark::recording {
namespace {

using tests::FieldFiller;
using tests::text_of;

tests::MemorySink written_and_read(const RunInfo& info, const Tick& tick, const std::string& path) {
  auto writer = RunWriter::create(path);
  EXPECT_TRUE(writer && (*writer)->begin(info) && (*writer)->add(tick) && (*writer)->end(tick.t_s));
  auto reader = RunReader::open(path);
  EXPECT_TRUE(reader) << (reader ? "" : reader.error().what);
  tests::MemorySink sink;
  if (reader) {
    EXPECT_TRUE((*reader)->read(sink));
  }
  return sink;
}

TEST(RecordFields, ComeBackFromARunFileOneByOne) {
  const tests::TempTree dir;
  RunInfo info = FieldFiller().filled<RunInfo>();

  const auto sink = written_and_read(info, tests::filled_tick(), dir.path("run"));

  info.ended_cleanly = true;
  EXPECT_EQ(text_of(sink.info), text_of(info));
  ASSERT_EQ(sink.ticks.size(), 1U);
  EXPECT_EQ(text_of(sink.ticks[0]), text_of(tests::filled_tick()));
}

TEST(RecordFields, OfAProcessMayBeUnknownOneByOne) {
  const tests::TempTree dir;
  int run = 0;
  visit_fields<ProcessSample>([&](const auto& field) {
    Tick tick = tests::filled_tick();
    tick.processes[0].*field.member = std::decay_t<decltype(tick.processes[0].*field.member)>{};
    if constexpr (std::is_same_v<decltype(field.member), char ProcessSample::*const>) {
      tick.processes[0].*field.member = '?';
    }

    const auto sink = written_and_read({}, tick, dir.path("run" + std::to_string(++run)));

    ASSERT_EQ(sink.ticks.size(), 1U) << field.name;
    EXPECT_EQ(text_of(sink.ticks[0]), text_of(tick)) << field.name;
  });
}

// An older tidemark compares this text: a file of the same version has to have it as it was.
TEST(RecordFields, MakeTheTablesAsEarlierReleasesDid) {
  const tests::TempTree dir;
  written_and_read({}, tests::filled_tick(), dir.path("run"));
  auto database = Database::open(dir.path("run"), Database::Mode::kReadOnly);
  ASSERT_TRUE(database);

  auto query =
      database->prepare("SELECT sql FROM sqlite_master WHERE type = 'table' ORDER BY rowid");
  std::string sql;
  while (*query->step()) {
    sql += std::string(query->bytes(0)) + '\n';
  }

  EXPECT_EQ(tests::difference_from_golden("recording/schema.sql", sql), "");
}

TEST(RecordFields, AreInNoVersionBeyondThatOfTheSchema) {
  for (const Table& table : tables()) {
    EXPECT_LE(table.since_version, kSchemaVersion) << table.name;
    std::set<std::string> names;
    for (const Column& column : table.columns) {
      EXPECT_LE(column.since_version, kSchemaVersion) << table.name << "." << column.name;
      EXPECT_TRUE(names.insert(column.name).second) << table.name << "." << column.name;
    }
  }
}

TEST(RecordFields, HaveAPlaceInOutput) {
  std::vector<std::string_view> names;

  visit_output_fields<ProcessSample>([&](const auto& field) { names.push_back(field.name); });

  ASSERT_EQ(names.size(), kFieldCount<ProcessSample>);
  EXPECT_EQ(names[0], "state");
  EXPECT_EQ(names[1], "threads");
  EXPECT_EQ(names[2], "rss_bytes");
}

}  // namespace
}  // namespace tidemark::recording
