// SPDX-License-Identifier: Apache-2.0
// Looks at the heap in a run file, whoever has written it.
#include "recording/heap_tables.h"

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

using testing::HasSubstr;
using tests::MemorySink;

using HeapTables = tests::RunFileTest;

TEST_F(HeapTables, GiveBackSeveralProcessesEachWithItsOwnOwners) {
  Tick tick = tests::full_tick();
  for (const ProcessRecord& process : {tests::trainer_record(), tests::worker_record()}) {
    Tick filled = tests::filled_tick();
    filled.heap.looks[0].look.key = process.key;
    filled.heap.looks[0].look.objects = static_cast<std::uint64_t>(process.key.pid);
    for (OwnerRecord& owner : filled.heap.owners) {
      owner.key = process.key;
      owner.path = "of " + std::to_string(process.key.pid);
      tick.heap.owners.push_back(owner);
    }
    tick.heap.looks.push_back(filled.heap.looks[0]);
  }
  record({tick});

  MemorySink sink;
  ASSERT_TRUE((*RunReader::open(path_))->read(sink));

  ASSERT_EQ(sink.ticks.size(), 1U);
  EXPECT_EQ(tests::text_of(sink.ticks[0]), tests::text_of(tick));
}

TEST_F(HeapTables, TakeALookThatComesAfterTheEndOfItsProcess) {
  auto writer = RunWriter::create(path_);
  ASSERT_TRUE(writer && (*writer)->begin(tests::full_run_info()));
  HeapFacts look;
  look.looks.emplace_back().look.key = tests::trainer_record().key;
  Tick first = tests::plain_tick(0);
  first.heap = look;
  ASSERT_TRUE((*writer)->add(first));
  ProcessRecord ended = tests::trainer_record();
  ended.exited_s = 1.0;
  ASSERT_TRUE((*writer)->process_ended(ended));
  Tick last = tests::empty_tick(2.0);
  last.heap = look;
  ASSERT_TRUE((*writer)->add(last));
  ASSERT_TRUE((*writer)->end(2.0));

  MemorySink sink;
  ASSERT_TRUE((*RunReader::open(path_))->read(sink));

  ASSERT_EQ(sink.ticks.size(), 2U);
  EXPECT_TRUE(sink.ticks[1].new_processes.empty());
  ASSERT_EQ(sink.ticks[1].heap.looks.size(), 1U);
  EXPECT_EQ(sink.ticks[1].heap.looks[0].look.key, tests::trainer_record().key);
}

TEST_F(HeapTables, WithPartsOfNothingAreRead) {
  record({tests::filled_tick()});
  execute(
      "INSERT INTO owners VALUES(999, 1, 1, 'container', 'x', 'dict', 0);"
      "INSERT INTO heap_looks VALUES(1, 999, 0.0, NULL, 'running', 0.0, 0.0, 0, 0, 0, 0, NULL,"
      " NULL, NULL, 0, '', '');"
      "INSERT INTO owner_samples VALUES(1, 999, 1, NULL, NULL, 0, 0, NULL, NULL, '');"
      "INSERT INTO owner_holds VALUES(1, 1, 77, 0, 'dict', '', '', '', 1, 1);"
      "INSERT INTO owner_sites VALUES(1, 999, 1, 0, 1, 1);"
      "INSERT INTO heap_types VALUES(1, 999, 0, 'dict', 1, 1);"
      "INSERT INTO interpreters VALUES(1, 999, '3.11.2', 0, NULL, '', NULL, '', '')");

  const Imported imported = import_file(path_);

  EXPECT_EQ(imported.error, "");
  ASSERT_EQ(imported.run.ticks.size(), 1U);
  EXPECT_EQ(tests::text_of(imported.run.ticks[0]), tests::text_of(tests::filled_tick()));
}

TEST_F(HeapTables, WithAShapeThatIsNoneAreDamaged) {
  for (const char* shape : {"3 x", " 3", "3  4", "99999999999999999999"}) {
    record({tests::filled_tick()});
    execute(std::string("UPDATE heap_tensors SET shape = '") + shape + "'");

    EXPECT_THAT(import_file(path_).error, HasSubstr("wrong type")) << shape;

    ASSERT_EQ(::unlink(path_.c_str()), 0);
  }
}

TEST_F(HeapTables, WithAnOwnerThatIsNoNumberAreDamaged) {
  record({tests::filled_tick()});
  execute("UPDATE owner_samples SET owner = -owner");

  EXPECT_THAT(import_file(path_).error, HasSubstr("a number is out of range"));
}

TEST_F(HeapTables, WithAPathWithoutEndAreReadInPart) {
  record({tests::filled_tick()});
  execute(
      "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
      "INSERT INTO owner_steps SELECT 1, 1, i, '.next', 'Node' FROM n");

  const Imported imported = import_file(path_);

  EXPECT_EQ(imported.error, "");
  ASSERT_EQ(imported.run.ticks.size(), 1U);
  EXPECT_EQ(imported.run.ticks[0].heap.owners[0].steps.size(), HeapCursor::kMostParts);
}

TEST_F(HeapTables, OfAKindOfTheFutureAreRead) {
  record({tests::filled_tick()});
  execute("UPDATE owners SET kind = 'cloud'; UPDATE heap_looks SET reading = 'dreaming'");

  const Imported imported = import_file(path_);

  EXPECT_EQ(imported.error, "");
  ASSERT_EQ(imported.run.ticks.size(), 1U);
  EXPECT_EQ(imported.run.ticks[0].heap.owners[0].kind, OwnerKind::kContainer);
  EXPECT_EQ(imported.run.ticks[0].heap.looks[0].look.reading, HeapReading::kRunning);
}

// For users.
TEST_F(HeapTables, HaveAViewThatNamesEachOwnerAtEachLook) {
  record({tests::filled_tick()});
  auto database = Database::open(path_, Database::Mode::kReadOnly);
  ASSERT_TRUE(database);

  EXPECT_EQ(*database->query_integer("SELECT count(*) FROM owner_memory"), 2);
}

}  // namespace
}  // namespace tidemark::recording
