// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/records.h"
#include "common/result.h"
#include "recording/rows.h"
#include "recording/sqlite.h"

namespace tidemark::recording {

Error damaged_file(const std::string& path, std::string_view why);

// The rows of one table of a run file, in the order of ticks. Column 0 is the tick; those of the
// table follow. A table that came later than the file has no rows.
class TableCursor {
 public:
  // `version` is that of the file's schema; `rest` is what follows FROM and the table.
  static Result<TableCursor> open(Database& database, std::int32_t version, std::string_view table,
                                  std::string_view rest);
  // Moves to the next row; at_end() afterwards when there is none.
  Status advance();
  bool at_end() const { return at_end_; }
  std::int64_t tick() const { return tick_; }
  const Statement& row() const { return *statement_; }

  // Fills the fields of `List` from the columns of this row. `unknown_name`, where the caller wants
  // it, gets a name that this version does not know; the field keeps its default.
  template <typename List, typename Record>
  Status load(int first_column, Record& record,
              std::optional<std::string>* unknown_name = nullptr) const {
    RowLoader loader(row(), first_column, version_);
    loader.load<List>(record);
    if (!loader.is_valid()) {
      return damaged_file(path_, "a column holds a value of the wrong type");
    }
    if (unknown_name != nullptr) {
      *unknown_name = loader.unknown_name();
    }
    return ok();
  }
  // A number of a module, frame, site or owner.
  Result<std::uint32_t> number(int column) const;

  // Calls `take()` for each row up to `tick` and moves beyond them; ends with the first error.
  template <typename Take>
  Status take_rows(std::int64_t tick, Take take) {
    while (!at_end_ && tick_ <= tick) {
      TIDEMARK_TRY(take());
      TIDEMARK_TRY(advance());
    }
    return ok();
  }

 private:
  TableCursor(std::int32_t version, std::string path) : version_(version), path_(std::move(path)) {}

  std::optional<Statement> statement_;  // nullopt: the file does not have the table
  std::int32_t version_;
  std::string path_;
  std::int64_t tick_ = 0;
  bool at_end_ = false;
};

// The process with a number of the file; nullptr: there is none.
using ProcessOfNumber = std::function<const ProcessKey*(std::int64_t)>;

// What the allocation tracer added to each tick of a run file. What refers to something that the
// file does not have (a recorder that was short of room left it out) is skipped. The database must
// outlive it and stay in one read transaction.
class SiteCursor {
 public:
  static constexpr std::size_t kMostFrames = 256;  // of one stack

  // `version` is that of the file's schema.
  static Result<SiteCursor> open(Database& database, std::int32_t version);

  // Adds what belongs to `tick`; ticks come in their order.
  Status take(std::int64_t tick, AllocationFacts& facts, const ProcessOfNumber& process_of);

 private:
  struct Tables {
    TableCursor modules;
    TableCursor frames;
    TableCursor sites;
    TableCursor samples;
    TableCursor ages;
    TableCursor traces;
    TableCursor accounts;
    TableCursor untraced;
    TableCursor shm_growth;
    TableCursor shm_segments;
  };
  SiteCursor(Tables tables, std::optional<Statement> stack, std::string path)
      : tables_(std::move(tables)), stack_(std::move(stack)), path_(std::move(path)) {}

  Status take_sites(std::int64_t tick, std::vector<SiteRecord>& sites,
                    const ProcessOfNumber& process_of);
  Status load_stack(SiteRecord& site);
  Status take_ages(std::int64_t tick, std::vector<SiteAges>& ages);
  Status take_shm(std::int64_t tick, std::optional<ShmGrowthReport>& shm);

  Tables tables_;
  std::optional<Statement> stack_;  // nullopt: the file does not have them
  std::string path_;
};

class HeapCursor;
class LedgerCursor;

// Puts ticks together again from the tables of a run file, one at a time. The database must
// outlive it and stay in one read transaction.
class TickCursor {
 public:
  // `version` is that of the file's schema.
  static Result<TickCursor> open(Database& database, std::int32_t version);
  ~TickCursor();
  TickCursor(TickCursor&&) noexcept;
  TickCursor& operator=(TickCursor&&) noexcept;

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
    TableCursor gpu_states;
    TableCursor markers;
    TableCursor events;
    TableCursor losses;
    TableCursor interventions;
    TableCursor ended;  // processes, in the order of their ends
  };
  TickCursor(Tables tables, SiteCursor sites, std::unique_ptr<HeapCursor> heap,
             std::unique_ptr<LedgerCursor> ledgers, std::map<std::int64_t, std::string> gpu_names,
             std::string path);

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
  Status take_gpus(std::int64_t tick, std::vector<GpuSample>& gpus);
  Error malformed(std::string_view why) const;

  Tables tables_;
  SiteCursor sites_;
  std::unique_ptr<HeapCursor> heap_;
  std::unique_ptr<LedgerCursor> ledgers_;
  std::map<std::int64_t, std::string> gpu_names_;
  std::string path_;
  std::unordered_map<std::int64_t, ProcessKey> keys_;  // by process number
  std::set<std::string> unknown_names_;
  std::optional<double> last_t_s_;
  std::int64_t tick_ = 0;  // number of the last tick; beyond all of them at the end
};

}  // namespace tidemark::recording
