// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/ledger_records.h"
#include "common/process_table.h"
#include "common/recording_sink.h"
#include "common/records.h"
#include "common/result.h"

namespace tidemark::tracker {

// The ledgers of one process in a run: the first and the last.
struct ProcessLedgers {
  MemoryLedger first;
  MemoryLedger last;
  std::uint64_t looks = 0;
  double seconds() const { return last.t_s - first.t_s; }
};

// The ledgers of a run, in the order in which their processes were met. Memory is bounded.
class Ledgers {
 public:
  static constexpr std::size_t kMostProcesses = 1024;  // further ones are counted

  void add(const Tick& tick);

  bool empty() const { return processes_.empty(); }
  const std::vector<ProcessLedgers>& processes() const { return processes_; }
  // nullptr: there is none.
  const ProcessLedgers* of(const ProcessKey& key) const;
  std::uint64_t left_out() const { return left_out_; }
  // The last sample of the machine.
  const std::optional<SystemSample>& machine() const { return machine_; }

 private:
  std::vector<ProcessLedgers> processes_;
  std::uint64_t left_out_ = 0;
  std::optional<SystemSample> machine_;
};

// Takes the ledgers of a run, and who its processes are.
class LedgerBuilder final : public RecordingSink {
 public:
  Status begin(const RunInfo& info) override {
    command_ = info.command;
    return ok();
  }
  Status add(const Tick& tick) override {
    ledgers_.add(tick);
    table_.update(tick);
    return ok();
  }
  // What has ended is still explained.
  Status process_ended(const ProcessRecord& /*process*/) override { return ok(); }
  Status end(double /*t_s*/) override { return ok(); }

  const Ledgers& ledgers() const { return ledgers_; }
  const ProcessTable& table() const { return table_; }
  const std::string& command() const { return command_; }

 private:
  Ledgers ledgers_;
  ProcessTable table_;
  std::string command_;
};

// A row of one or several ledgers, now and at the first look; what was not there has zeros.
struct LedgerChange {
  LedgerRow now;
  LedgerRow before;

  std::int64_t rss_growth_bytes() const {
    return static_cast<std::int64_t>(now.rss_bytes) - static_cast<std::int64_t>(before.rss_bytes);
  }
  std::int64_t footprint_growth_bytes() const {
    return static_cast<std::int64_t>(now.footprint_bytes) -
           static_cast<std::int64_t>(before.footprint_bytes);
  }
  std::int64_t pss_growth_bytes() const {
    return static_cast<std::int64_t>(now.pss_bytes) - static_cast<std::int64_t>(before.pss_bytes);
  }
};
// The rows of all these processes, added up by kind and name; the largest first. Of a process that
// was looked at once the first look is the last.
std::vector<LedgerChange> add_up(std::span<const ProcessLedgers> processes);

// By how much all rows of a kind have grown between the looks at a process.
std::int64_t footprint_growth_of(const ProcessLedgers& process, LedgerKind kind);

// What ledgers tell about known causes.
struct LedgerFacts {
  std::optional<std::uint64_t> most_malloc_heaps;  // in one process
  std::optional<double> cgroup_charged_share;      // of the limit, where page cache is the reason
  // Between the looks at one process.
  double footprint_growth_bytes = 0.0;
  std::optional<double> free_share;  // of its growth: freed, and kept by malloc
  std::optional<double> huge_pages_bytes;
  std::optional<double> live_heap_bytes;
};
// `key`: of the process whose growth counts; nullptr: the one that has grown most.
LedgerFacts ledger_facts(const Ledgers& ledgers, const ProcessKey* key);

}  // namespace tidemark::tracker
