// SPDX-License-Identifier: Apache-2.0
#include "recording/ledger_tables.h"

#include <algorithm>

#include "recording/rows.h"
#include "recording/schema.h"

namespace tidemark::recording {

Result<LedgerWriter> LedgerWriter::prepare(Database& database) {
  TIDEMARK_TRY_ASSIGN(auto ledger, database.prepare(insert_sql("ledgers")));
  TIDEMARK_TRY_ASSIGN(auto row, database.prepare(insert_sql("ledger_rows")));
  return LedgerWriter(std::move(ledger), std::move(row));
}

Status LedgerWriter::write(const std::vector<MemoryLedger>& ledgers, std::int64_t tick,
                           const ProcessNumber& number_of) {
  for (const MemoryLedger& ledger : ledgers) {
    TIDEMARK_TRY_ASSIGN(const std::int64_t process, number_of(ledger.key));
    TIDEMARK_TRY(insert(ledger_, ledger, tick, process));
    std::int64_t place = 0;
    for (const LedgerRow& row : ledger.rows) {
      TIDEMARK_TRY(insert(row_, row, tick, process, place++));
    }
  }
  return ok();
}

Result<LedgerCursor> LedgerCursor::open(Database& database, std::int32_t version) {
  TIDEMARK_TRY_ASSIGN(auto ledgers,
                      TableCursor::open(database, version, "ledgers", "ORDER BY tick, process"));
  TIDEMARK_TRY_ASSIGN(auto rows, TableCursor::open(database, version, "ledger_rows",
                                                   "ORDER BY tick, process, place"));
  return LedgerCursor(std::move(ledgers), std::move(rows));
}

// A kind that a later version has added reads as "other".
Status LedgerCursor::take(std::int64_t tick, std::vector<MemoryLedger>& ledgers,
                          const ProcessOfNumber& process_of) {
  const auto ledger_of = [&](const ProcessKey* key) -> MemoryLedger* {
    const auto ledger = std::find_if(ledgers.begin(), ledgers.end(), [&](const MemoryLedger& each) {
      return key != nullptr && each.key == *key;
    });
    return ledger == ledgers.end() ? nullptr : &*ledger;
  };
  TIDEMARK_TRY(ledgers_.take_rows(tick, [&] {
    const ProcessKey* const key = process_of(ledgers_.row().integer(2));
    if (key == nullptr || ledger_of(key) != nullptr) {
      return ok();
    }
    MemoryLedger& ledger = ledgers.emplace_back();
    ledger.key = *key;
    return ledgers_.load<MemoryLedger>(3, ledger);
  }));
  return rows_.take_rows(tick, [&] {
    MemoryLedger* const ledger = ledger_of(process_of(rows_.row().integer(2)));
    if (ledger == nullptr || ledger->rows.size() >= kMostRows) {
      return ok();
    }
    return rows_.load<LedgerRow>(4, ledger->rows.emplace_back());
  });
}

}  // namespace tidemark::recording
