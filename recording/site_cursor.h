// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/process_key.h"
#include "common/result.h"
#include "common/site_records.h"
#include "recording/sqlite.h"
#include "recording/table_cursor.h"

namespace tidemark::recording {

// The process with a number of the file; nullptr: there is none.
using ProcessOfNumber = std::function<const ProcessKey*(std::int64_t)>;

// What the allocation tracer added to each tick of a run file. What refers to something that the
// file does not have (a recorder that was short of room left it out) is skipped. The database must
// outlive it and stay in one read transaction.
class SiteCursor {
 public:
  static constexpr std::int32_t kSinceVersion = 2;          // of the schema
  static constexpr std::int32_t kAccountsSinceVersion = 3;  // and of segments in /dev/shm
  static constexpr std::size_t kMostFrames = 256;           // of one stack

  // `version` is that of the file's schema, at least kSinceVersion.
  static Result<SiteCursor> open(Database& database, std::int32_t version);

  // Adds what belongs to `tick`; ticks come in their order.
  Status take(std::int64_t tick, AllocationFacts& facts, const ProcessOfNumber& process_of);

 private:
  struct Tables {
    TableCursor modules;
    TableCursor frames;
    TableCursor sites;
    TableCursor samples;
    TableCursor births;
    TableCursor traces;
    std::optional<TableCursor> accounts;  // these three: nullopt when the file is older
    std::optional<TableCursor> shm_growth;
    std::optional<TableCursor> shm_segments;
    Statement stack;
  };
  SiteCursor(Tables tables, std::string path)
      : tables_(std::move(tables)), path_(std::move(path)) {}

  template <typename Record>
  Status load(const Statement& row, int first_column, Record& record) const;
  template <typename Record>
  Status take_numbered(TableCursor& table, std::int64_t tick, std::uint32_t Record::*number,
                       std::vector<Record>& records);
  Status take_sites(std::int64_t tick, std::vector<SiteRecord>& sites,
                    const ProcessOfNumber& process_of);
  Status load_stack(SiteRecord& site);
  Status take_births(std::int64_t tick, std::vector<SiteBirths>& births);
  Status take_traces(std::int64_t tick, std::vector<TraceSample>& traces,
                     const ProcessOfNumber& process_of);
  Status take_accounts(std::int64_t tick, std::vector<MemoryAccount>& accounts,
                       const ProcessOfNumber& process_of);
  Status take_shm(std::int64_t tick, std::optional<ShmGrowthReport>& shm);
  Result<std::uint32_t> number(const Statement& row, int column) const;

  Tables tables_;
  std::string path_;
};

}  // namespace tidemark::recording
