// SPDX-License-Identifier: Apache-2.0
// Memory ledgers in a run file, whoever has written it.
#include "recording/ledger_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "recording/run_reader.h"
#include "recording/run_writer.h"
#include "tests/support/filled_records.h"
#include "tests/support/memory_sink.h"
#include "tests/support/record_text.h"
#include "tests/support/run_file_fixture.h"
#include "tests/support/sample_run.h"
#include "tests/support/temp_tree.h"
#include "tests/unit/recording/import/import_text.h"

namespace tidemark::recording {
namespace {

using LedgerTables = tests::RunFileTest;

TEST_F(LedgerTables, GiveBackSeveralProcessesEachWithItsOwnRows) {
  Tick tick = tests::full_tick();
  for (const ProcessRecord& process : {tests::trainer_record(), tests::worker_record()}) {
    MemoryLedger ledger = tests::filled_tick().ledgers[0];
    ledger.key = process.key;
    ledger.rows[0].name = "of " + std::to_string(process.key.pid) + "\xff";
    tick.ledgers.push_back(ledger);
  }
  record({tick});

  tests::MemorySink sink;
  ASSERT_TRUE((*RunReader::open(path_))->read(sink));

  ASSERT_EQ(sink.ticks.size(), 1U);
  EXPECT_EQ(tests::text_of(sink.ticks[0]), tests::text_of(tick));
}

TEST_F(LedgerTables, WithRowsOfNothingAreRead) {
  record({tests::filled_tick()});
  execute(
      "INSERT INTO ledger_rows VALUES(1, 999, 0, 'file', '', 1, 1, 1, 1, 1, 1, 1, NULL);"
      "INSERT INTO ledgers VALUES(1, 999, 0.0, 0.0, 1, 1, 0, 0, NULL, NULL, 0, NULL, NULL, NULL,"
      " 0, '')");

  const Imported imported = import_file(path_);

  EXPECT_EQ(imported.error, "");
  ASSERT_EQ(imported.run.ticks.size(), 1U);
  EXPECT_EQ(tests::text_of(imported.run.ticks[0]), tests::text_of(tests::filled_tick()));
}

TEST_F(LedgerTables, OfAKindOfTheFutureAreRead) {
  record({tests::filled_tick()});
  execute("UPDATE ledger_rows SET kind = 'cloud'");

  const Imported imported = import_file(path_);

  EXPECT_EQ(imported.error, "");
  ASSERT_EQ(imported.run.ticks.size(), 1U);
  EXPECT_EQ(imported.run.ticks[0].ledgers[0].rows[0].kind, LedgerKind::kOther);
}

TEST_F(LedgerTables, WithASizeThatIsNegativeAreDamaged) {
  record({tests::filled_tick()});
  execute("UPDATE ledger_rows SET rss_bytes = -1");

  EXPECT_THAT(import_file(path_).error, testing::HasSubstr("wrong type"));
}

TEST_F(LedgerTables, WithRowsWithoutEndAreReadInPart) {
  record({tests::filled_tick()});
  execute(
      "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 12000) "
      "INSERT INTO ledger_rows SELECT 1, 1, i, 'file', '', 1, 1, 1, 1, 1, 1, 1, NULL FROM n");

  const Imported imported = import_file(path_);

  EXPECT_EQ(imported.error, "");
  ASSERT_EQ(imported.run.ticks.size(), 1U);
  EXPECT_EQ(imported.run.ticks[0].ledgers[0].rows.size(), LedgerCursor::kMostRows);
}

}  // namespace
}  // namespace tidemark::recording
