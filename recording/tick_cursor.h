// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/records.h"
#include "common/result.h"
#include "recording/site_cursor.h"
#include "recording/sqlite.h"
#include "recording/table_cursor.h"

namespace tidemark::recording {

// Puts ticks together again from the tables of a run file, one at a time. The database must
// outlive it and stay in one read transaction.
class TickCursor {
 public:
  // `version` is that of the file's schema.
  static Result<TickCursor> open(Database& database, std::int32_t version);

  // Fills `tick` with the next one; false at the end. After an error `tick` is not to be used.
  Result<bool> next(Tick& tick);
  // The next process that had ended before `before_s`, in the order of ends; nullopt: none (yet).
  // One that the tick of the last next() introduces comes after that tick.
  Result<std::optional<ProcessRecord>> next_ended(double before_s);

  // Role and event names of a newer version that this one does not know.
  const std::set<std::string>& unknown_names() const { return unknown_names_; }

 private:
  struct Tables {
    TableCursor ticks;
    TableCursor processes;
    TableCursor process_samples;
    TableCursor group_samples;
    TableCursor system_samples;
    TableCursor gpu_samples;
    TableCursor gpu_process_samples;
    TableCursor markers;
    TableCursor events;
    TableCursor losses;
    TableCursor ended;  // column 0 is no tick here
  };
  TickCursor(Tables tables, std::map<std::int64_t, std::string> gpu_names, std::string path)
      : tables_(std::move(tables)), gpu_names_(std::move(gpu_names)), path_(std::move(path)) {}

  Status take_sites(std::int64_t tick, AllocationFacts& facts);

  template <typename Record>
  Result<bool> load_names(const TableCursor& table, int first_column, Record& record);
  template <typename Record>
  Status load(const TableCursor& table, int first_column, Record& record);
  void note_unknown(std::string_view name);
  template <typename Record>
  Status take_facts(TableCursor& table, std::int64_t tick, std::vector<Record>& records);
  Status take_processes(std::int64_t tick, std::vector<ProcessRecord>& processes);
  Status take_samples(std::int64_t tick, std::vector<ProcessSample>& samples);
  Status take_groups(std::int64_t tick, Tick& into);
  Status take_system(std::int64_t tick, std::optional<SystemSample>& system);
  Status take_gpus(std::int64_t tick, std::vector<GpuSample>& gpus);
  Status take_gpu_states(std::int64_t tick, std::vector<GpuSample>& gpus);
  Error malformed(std::string_view why) const;

  Tables tables_;
  std::optional<SiteCursor> sites_;        // nullopt: the file is older than they are
  std::optional<TableCursor> gpu_states_;  // likewise
  std::map<std::int64_t, std::string> gpu_names_;
  std::string path_;
  std::unordered_map<std::int64_t, ProcessKey> keys_;  // by process number
  std::set<std::string> unknown_names_;
  std::optional<double> last_t_s_;
  std::int64_t tick_ = 0;  // number of the last tick; beyond all of them at the end
};

}  // namespace tidemark::recording
