// SPDX-License-Identifier: Apache-2.0
#include "recording/schema.h"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "common/check.h"

namespace tidemark::recording {
namespace {

template <typename T>
struct Stored {
  static constexpr bool kMayBeNull = false;
  static constexpr std::string_view kType = std::same_as<T, double>                      ? "REAL"
                                            : std::integral<T> && !std::same_as<T, char> ? "INTEGER"
                                                                                         : "TEXT";
};
template <typename T>
struct Stored<std::optional<T>> {
  static constexpr bool kMayBeNull = true;
  static constexpr std::string_view kType = Stored<T>::kType;
};

template <typename Value>
void append_column(std::vector<Column>& columns, std::string_view name, std::int32_t since) {
  if constexpr (std::same_as<Value, ProcessKey>) {
    append_column<pid_t>(columns, "pid", since);
    append_column<std::uint64_t>(columns, "start_ticks", since);
  } else {
    using Kind = Stored<Value>;
    columns.push_back({std::string(name), Kind::kType, !Kind::kMayBeNull, since});
  }
}

Column number(std::string_view name) { return {std::string(name), "INTEGER", true}; }
Column text(std::string_view name) { return {std::string(name), "TEXT", true}; }

// The columns of a list between others.
template <typename List>
std::vector<Column> row(std::vector<Column> columns, const std::vector<Column>& after = {}) {
  visit_fields<List>([&](const auto& field) {
    using Value = typename std::decay_t<decltype(field)>::Value;
    append_column<Value>(columns, field.name, field.traits.since_version);
  });
  columns.insert(columns.end(), after.begin(), after.end());
  return columns;
}

std::vector<Table> all_tables() {
  const Column tick = number("tick");
  const Column process = number("process");
  const Column site = number("site");
  const Column owner = number("owner");
  const Column place = number("place");
  return {
      {"run", row<RunInfo>({number("id")}, {{"end_s", "REAL"}})},
      {"ticks", row<Tick>({tick}, {{"write_late_s", "REAL"}})},
      {"processes", row<ProcessRecord>({process, tick})},
      {"process_samples", row<ProcessSample>({tick, process}), 2},
      {"group_samples", row<GroupSample>({tick, text("who")}), 2},
      {"system_samples", row<SystemSample>({tick})},
      {"gpus", {number("gpu"), text("name")}},
      {"gpu_samples", row<GpuSample>({tick}), 2},
      {"gpu_process_samples", row<GpuProcessUse>({tick, number("gpu")}), 3},
      {"markers", row<MarkerRecord>({number("marker"), tick})},
      {"events", row<EventRecord>({number("event"), tick})},
      {"losses", row<LossRecord>({number("loss"), tick})},
      {"modules", row<ModuleRecord>({number("module"), tick}), 0, 2},
      {"frames", row<FrameRecord>({number("frame"), tick}), 0, 2},
      {"sites", row<SiteRecord>({site, tick, process}), 0, 2},
      {"site_frames", {site, number("depth"), number("frame")}, 2, 2},
      {"site_samples", row<SiteSample>({tick, site}), 2, 2},
      {"site_births", row<SiteAges::Interval>({site, place, tick}), 2, 2},
      {"trace_samples", row<TraceSample>({tick, process}), 2, 2},
      {"trace_accounts", row<MemoryAccount>({tick, process}), 2, 3},
      {"shm_growth", row<ShmGrowthReport>({tick}), 0, 3},
      {"shm_segments", row<GrowingSegment>({tick, place}), 2, 3},
      {"gpu_states", row<GpuState>({tick, number("gpu")}), 2, 3},
      {"untraced_processes", row<UntracedProcess>({tick, process}), 2, 4},
      {"heap_looks", row<HeapLook>({tick, process}), 2, 5},
      {"interpreters", row<InterpreterFacts>({tick, process}), 2, 5},
      {"owners", row<OwnerRecord>({process, owner, tick}), 2, 5},
      {"owner_steps", row<PathStep>({process, owner, place}), 3, 5},
      {"owner_samples", row<OwnerSample>({tick, process, owner}), 3, 5},
      {"owner_holds", row<HeldObjects>({tick, process, owner, place}), 4, 5},
      {"owner_sites", row<OwnerSite>({tick, process, owner, place}), 4, 5},
      {"heap_types", row<TypeSample>({tick, process, place}), 3, 5},
      {"heap_tensors", row<TensorSample>({tick, process, place}), 3, 5},
      {"interventions", row<InterventionRecord>({tick, process}), 3, 6},
      {"ledgers", row<MemoryLedger>({tick, process}), 2, 6},
      {"ledger_rows", row<LedgerRow>({tick, process, place}), 3, 6},
  };
}

std::string create_sql(const Table& table) {
  std::string columns;
  std::string key;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    const bool is_row_number = table.key_columns == 0 && i == 0;
    columns += fmt::format("{}{} {}{}", i == 0 ? "" : ", ", column.name, column.type,
                           is_row_number        ? " PRIMARY KEY"
                           : column.is_not_null ? " NOT NULL"
                                                : "");
    if (i < table.key_columns) {
      key += (i == 0 ? "" : ", ") + column.name;
    }
  }
  return key.empty() ? fmt::format("CREATE TABLE {}({})", table.name, columns)
                     : fmt::format("CREATE TABLE {}({}, PRIMARY KEY({})) WITHOUT ROWID", table.name,
                                   columns, key);
}

// For users; our own reader does not use them.
constexpr std::string_view kViews =
    "CREATE VIEW process_memory AS SELECT t.tick, t.t_s, t.step, t.epoch, p.pid, p.start_ticks,"
    " p.role, p.comm, s.rss_anon_bytes + s.rss_shmem_bytes + ifnull(s.swap_bytes, 0)"
    " AS footprint_bytes, s.rss_bytes, s.rss_anon_bytes, s.rss_file_bytes, s.rss_shmem_bytes,"
    " s.swap_bytes, s.pss_bytes, s.pss_footprint_bytes, s.uss_bytes, s.pss_age_s"
    " FROM process_samples s JOIN ticks t USING(tick) JOIN processes p USING(process);"
    "CREATE VIEW tree_memory AS SELECT t.tick, t.t_s, t.step, t.epoch, g.processes,"
    " g.footprint_bytes, g.rss_bytes, g.pss_bytes, g.swap_bytes, g.footprint_held, g.unreadable"
    " FROM group_samples g JOIN ticks t USING(tick) WHERE g.who = 'tree';"
    "CREATE VIEW site_memory AS SELECT t.tick, t.t_s, t.step, p.pid, p.start_ticks, p.role,"
    " s.site, s.kind, m.live_bytes, m.live_blocks, m.alloc_bytes, m.alloc_blocks,"
    " m.resident_bytes FROM site_samples m JOIN ticks t USING(tick) JOIN sites s USING(site)"
    " JOIN processes p USING(process);"
    "CREATE VIEW site_stacks AS SELECT f.site, f.depth, r.kind, r.function, r.file, r.line,"
    " m.path AS module, r.module_offset, r.is_inlined FROM site_frames f JOIN frames r"
    " USING(frame) LEFT JOIN modules m USING(module);"
    "CREATE VIEW owner_memory AS SELECT l.tick, l.t_s, l.step, p.pid, p.start_ticks, p.role,"
    " o.owner, o.kind, o.path, o.type, o.is_library, s.entries, s.growth_bytes,"
    " s.growth_alone_bytes, s.retained_bytes, s.reached_bytes FROM owner_samples s"
    " JOIN heap_looks l USING(tick, process) JOIN owners o USING(process, owner)"
    " JOIN processes p USING(process);"
    "CREATE VIEW ledger_memory AS SELECT l.tick, l.t_s, p.pid, p.start_ticks, p.role, r.kind,"
    " r.name, r.count, r.rss_bytes, r.pss_bytes, r.footprint_bytes, r.swap_bytes"
    " FROM ledger_rows r JOIN ledgers l USING(tick, process) JOIN processes p USING(process);";

constexpr std::string_view kSqliteMagic{"SQLite format 3\0", 16};

// Big-endian, as the file format has it:
// https://www.sqlite.org/fileformat2.html#the_database_header
std::uint32_t header_field(std::string_view head, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = value << 8U | static_cast<unsigned char>(head[offset + i]);
  }
  return value;
}

// A real table: views and virtual tables have no pages of their own.
Result<bool> is_table(Statement& query, std::string_view name) {
  query.bind_bytes(1, name);
  TIDEMARK_TRY_ASSIGN(const bool has_row, query.step());
  const bool is_real = has_row && query.bytes(0) == "table" && query.integer(1) > 0;
  query.reset();
  return is_real;
}

Result<bool> has_columns(Statement& query, const Table& table, std::int32_t version) {
  query.bind_bytes(1, table.name);
  bool is_same = true;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    if (column.since_version > version) {
      continue;
    }
    TIDEMARK_TRY_ASSIGN(const bool has_row, query.step());
    if (!has_row) {
      return false;  // step() has reset it
    }
    // SQLite reports the number of the row as a key of one column that may be NULL.
    const bool is_row_number = table.key_columns == 0 && i == 0;
    const std::size_t place_in_key = i < table.key_columns || is_row_number ? i + 1 : 0;
    is_same = is_same && query.bytes(0) == column.name && query.bytes(1) == column.type &&
              (query.integer(2) != 0) == (column.is_not_null && !is_row_number) &&
              std::cmp_equal(query.integer(3), place_in_key);
  }
  TIDEMARK_TRY_ASSIGN(const bool has_more, query.step());
  query.reset();
  return is_same && !has_more;
}

}  // namespace

std::span<const Table> tables() {
  static const std::vector<Table> kAll = all_tables();
  return kAll;
}

const Table& table_named(std::string_view name) {
  const auto all = tables();
  const auto table =
      std::find_if(all.begin(), all.end(), [&](const Table& each) { return each.name == name; });
  TIDEMARK_CHECK(table != all.end(), "no such table in the schema");
  return *table;
}

Status create_schema(Database& database) {
  std::string sql = "BEGIN;";
  for (const Table& table : tables()) {
    sql += create_sql(table) + ';';
  }
  sql += kViews;
  sql += fmt::format("PRAGMA application_id={};PRAGMA user_version={};COMMIT;", kApplicationId,
                     kSchemaVersion);
  return database.execute(sql);
}

Status check_schema(Database& database, std::int32_t version) {
  TIDEMARK_TRY_ASSIGN(auto kind,
                      database.prepare("SELECT type, rootpage FROM sqlite_master WHERE name = ?1"));
  TIDEMARK_TRY_ASSIGN(auto columns, database.prepare("SELECT name, type, \"notnull\", pk"
                                                     " FROM pragma_table_info(?1) ORDER BY cid"));
  for (const Table& table : tables()) {
    if (table.since_version > version) {
      continue;
    }
    TIDEMARK_TRY_ASSIGN(bool is_ours, is_table(kind, table.name));
    if (is_ours) {
      TIDEMARK_TRY_ASSIGN(is_ours, has_columns(columns, table, version));
    }
    if (!is_ours) {
      return Error{Errc::kMalformed,
                   fmt::format("{}: its table '{}' is missing or was altered; this is not a run "
                               "file as tidemark writes it",
                               database.path(), table.name)};
    }
  }
  return ok();
}

std::string insert_sql(std::string_view table, std::string_view verb) {
  std::string parameters = "?";
  for (std::size_t i = 1; i < table_named(table).columns.size(); ++i) {
    parameters += ",?";
  }
  return fmt::format("{} INTO {} VALUES({})", verb, table, parameters);
}

std::string select_sql(std::string_view table, std::string_view first, std::string_view rest,
                       std::int32_t version) {
  std::string columns(first);
  for (const Column& column : table_named(table).columns) {
    if (column.since_version <= version) {
      columns += ", " + column.name;
    }
  }
  return fmt::format("SELECT {} FROM {} {}", columns, table, rest);
}

FileKind classify_header(std::string_view head) {
  if (head.empty()) {
    return FileKind::kEmpty;
  }
  if (head.substr(0, kSqliteMagic.size()) != kSqliteMagic) {
    return FileKind::kNotSqlite;
  }
  if (head.size() < kSqliteHeaderBytes ||
      header_field(head, 68) != static_cast<std::uint32_t>(kApplicationId)) {
    return FileKind::kOtherDatabase;
  }
  const auto version = static_cast<std::int32_t>(header_field(head, 60));
  if (version > kSchemaVersion) {
    return FileKind::kNewerRun;
  }
  return version < kOldestSchemaVersion ? FileKind::kOlderRun : FileKind::kRun;
}

}  // namespace tidemark::recording
