// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "common/ledger_records.h"
#include "common/records.h"

// Ledgers that tests make up. Sizes in MiB.
namespace tidemark::tests {

inline constexpr std::uint64_t kLedgerMiB = 1U << 20U;

inline LedgerRow ledger_row(LedgerKind kind, std::uint64_t mib, std::uint64_t count = 1,
                            const std::string& name = "") {
  const std::uint64_t bytes = mib * kLedgerMiB;
  const bool is_file = kind == LedgerKind::kFile || kind == LedgerKind::kProgram;
  LedgerRow row;
  row.kind = kind;
  row.name = name;
  row.count = count;
  row.rss_bytes = bytes;
  row.pss_bytes = bytes;
  row.footprint_bytes = is_file ? bytes / 8 : bytes;
  row.pss_footprint_bytes = row.footprint_bytes;
  return row;
}

// The kernel counts what the rows have.
inline MemoryLedger ledger_of(pid_t pid, double t_s, std::vector<LedgerRow> rows) {
  MemoryLedger ledger;
  ledger.key = {pid, 7};
  ledger.t_s = t_s;
  ledger.rows = std::move(rows);
  ledger.rss_bytes = ledger.sum().rss_bytes;
  ledger.footprint_bytes = ledger.sum().footprint_bytes;
  ledger.threads = 1;
  ledger.malloc_heaps = 0;
  return ledger;
}

inline Tick ledger_tick(double t_s, std::vector<MemoryLedger> ledgers) {
  Tick tick;
  tick.t_s = t_s;
  for (const MemoryLedger& ledger : ledgers) {
    ProcessSample sample;
    sample.key = ledger.key;
    sample.rss_bytes = ledger.rss_bytes;
    sample.rss_anon_bytes = ledger.footprint_bytes;
    sample.rss_shmem_bytes = 0;
    tick.processes.push_back(sample);
    tick.tree.footprint_bytes = tick.tree.footprint_bytes.value_or(0) + ledger.footprint_bytes;
    tick.tree.rss_bytes += ledger.rss_bytes;
    ++tick.tree.processes;
  }
  tick.ledgers = std::move(ledgers);
  return tick;
}

}  // namespace tidemark::tests
