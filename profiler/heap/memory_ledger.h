// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "common/ledger_records.h"
#include "common/process_key.h"
#include "common/result.h"
#include "profiler/reader/block_sites.h"

namespace tidemark::heap {

struct LedgerOptions {
  std::string proc_root = "/proc";
  // Rows of their own for the largest files and segments; the others of a kind are one row.
  std::size_t most_named = 40;
  double most_seconds = 2.0;  // for what is free in heaps, beside the pass over the map
  // Asked for what the allocation tracer knows, where it is at work; nullptr: nobody.
  std::shared_ptr<reader::BlockSites> traces = nullptr;
};

// Where the memory of a process is, read from outside in one pass over its memory map (about 15 ms
// for each GiB), while it runs on. What it takes the right to trace the process to know (the free
// part of heaps, arenas of Python) is left in larger rows where that is refused, and
// MemoryLedger::problem says so. An error: the map cannot be read, or the process has ended.
Result<MemoryLedger> read_ledger(const ProcessKey& key, double t_s,
                                 const LedgerOptions& options = {});

}  // namespace tidemark::heap
