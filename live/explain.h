// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/ledger_records.h"
#include "common/process_key.h"
#include "common/result.h"
#include "live/watch_options.h"
#include "live/watch_system.h"

namespace tidemark::live {

struct ExplainOptions {
  std::string input;  // a run file with ledgers; empty: read a job
  WatchOptions watch;
  std::optional<std::uint64_t> looks;    // one; two where `every_ns` is given
  std::optional<std::int64_t> every_ns;  // from one look to the next; 20 s
  bool all = false;                      // every row of every process in the report
  bool plain = false;
};

// The ledger of a process, `t_s` after the start of the run.
using ReadLedger = std::function<Result<MemoryLedger>(const ProcessKey& key, double t_s)>;
// By profiler/heap.
ReadLedger read_ledger_by_heap();

// `tidemark explain`: where the memory of a job is, row by row, and with several looks which row
// grows. Around a command its status is passed on. `system`, `read`: nullptr for this machine.
int run_explain(const ExplainOptions& options, WatchSystem* system = nullptr,
                ReadLedger read = nullptr);

}  // namespace tidemark::live
