// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/ledger_records.h"
#include "common/result.h"
#include "recording/sqlite.h"
#include "recording/tick_cursor.h"
#include "recording/tick_writer.h"

// Memory ledgers in a run file: who writes them, and who reads them.
namespace tidemark::recording {

// The caller holds the transaction.
class LedgerWriter {
 public:
  static Result<LedgerWriter> prepare(Database& database);

  Status write(const std::vector<MemoryLedger>& ledgers, std::int64_t tick,
               const ProcessNumber& number_of);

 private:
  LedgerWriter(Statement ledger, Statement row)
      : ledger_(std::move(ledger)), row_(std::move(row)) {}

  Statement ledger_;
  Statement row_;
};

// The ledgers of each tick of a run file. What belongs to no process or ledger of the file is
// skipped. The database must outlive it and stay in one read transaction.
class LedgerCursor {
 public:
  static constexpr std::size_t kMostRows = 10'000;  // of one ledger: a file can be made up

  // `version` is that of the file's schema.
  static Result<LedgerCursor> open(Database& database, std::int32_t version);

  // Adds what belongs to `tick`; ticks come in their order.
  Status take(std::int64_t tick, std::vector<MemoryLedger>& ledgers,
              const ProcessOfNumber& process_of);

 private:
  LedgerCursor(TableCursor ledgers, TableCursor rows)
      : ledgers_(std::move(ledgers)), rows_(std::move(rows)) {}

  TableCursor ledgers_;
  TableCursor rows_;
};

}  // namespace tidemark::recording
