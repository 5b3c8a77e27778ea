// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/ledger_records.h"
#include "report/explain_text.h"

// Ledgers in words. All of it is escaped.
namespace tidemark::report {

// What a row is, in at most so many columns: "Python: small objects (598 arenas)".
std::string ledger_row_text(const LedgerRow& row, std::size_t columns);
// What a person would call the kind in a sentence: "small Python objects".
std::string_view ledger_kind_words(LedgerKind kind);
// "trainer, pid 4711 (train.py)".
std::string ledger_process_label(const ExplainReport& report, const ProcessKey& key);
// "12 %"; "" of nothing.
std::string share_of(std::uint64_t bytes, std::uint64_t whole);
// The processes of a report, that with the largest footprint first.
std::vector<tracker::ProcessLedgers> largest_ledgers(const ExplainReport& report);
// "most of trainer, pid 4711 (train.py) is large blocks (1.82 GiB, 53 %). Next: ...".
std::string ledger_answer_text(const ExplainReport& report);

}  // namespace tidemark::report
