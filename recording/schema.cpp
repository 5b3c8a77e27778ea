// SPDX-License-Identifier: Apache-2.0
#include "recording/schema.h"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <initializer_list>
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
    columns.push_back({std::string(name), Kind::kType, !Kind::kMayBeNull, 0, since});
  }
}

// A table under construction: columns in their order, then the key.
class TableMaker {
 public:
  explicit TableMaker(std::string_view name, std::int32_t since_version = 1)
      : table_{name, {}, true, since_version} {}

  // Columns that no list has.
  template <typename Value = std::int64_t>
  TableMaker&& with(std::string_view name) && {
    append_column<Value>(table_.columns, name, table_.since_version);
    return std::move(*this);
  }
  // Those of a list.
  template <typename List>
  TableMaker&& fields() && {
    visit_fields<List>([&](const auto& field) {
      using Value = typename std::decay_t<decltype(field)>::Value;
      append_column<Value>(table_.columns, field.name,
                           std::max(field.traits.since_version, table_.since_version));
    });
    return std::move(*this);
  }
  // The first column is the number of the row.
  Table numbered() && {
    table_.columns.front().primary_key = 1;
    table_.columns.front().is_not_null = false;  // as PRAGMA table_info reports it
    return std::move(table_);
  }
  // These columns are the key, and there is no number beside it.
  Table keyed(std::initializer_list<std::string_view> key) && {
    int place = 0;
    for (const std::string_view name : key) {
      const auto column = std::find_if(table_.columns.begin(), table_.columns.end(),
                                       [&](const Column& each) { return each.name == name; });
      column->primary_key = ++place;
    }
    table_.has_rowid = false;
    return std::move(table_);
  }

 private:
  Table table_;
};

std::vector<Table> tables_of_the_recording() {
  using T = TableMaker;
  using MaybeReal = std::optional<double>;
  std::vector<Table> all;
  all.push_back(T("run").with("id").fields<RunInfo>().with<MaybeReal>("end_s").numbered());
  all.push_back(T("ticks").with("tick").fields<Tick>().with<MaybeReal>("write_late_s").numbered());
  all.push_back(T("processes").with("process").with("tick").fields<ProcessRecord>().numbered());
  all.push_back(T("process_samples")
                    .with("tick")
                    .with("process")
                    .fields<ProcessSample>()
                    .keyed({"tick", "process"}));
  all.push_back(T("group_samples")
                    .with("tick")
                    .with<std::string>("who")
                    .fields<GroupSample>()
                    .keyed({"tick", "who"}));
  all.push_back(T("system_samples").with("tick").fields<SystemSample>().numbered());
  all.push_back(T("gpus").with("gpu").with<std::string>("name").numbered());
  all.push_back(T("gpu_samples").with("tick").fields<GpuSample>().keyed({"tick", "gpu"}));
  all.push_back(T("gpu_process_samples")
                    .with("tick")
                    .with("gpu")
                    .fields<GpuProcessUse>()
                    .keyed({"tick", "gpu", "pid"}));
  all.push_back(T("markers").with("marker").with("tick").fields<MarkerRecord>().numbered());
  all.push_back(T("events").with("event").with("tick").fields<EventRecord>().numbered());
  all.push_back(T("losses").with("loss").with("tick").fields<LossRecord>().numbered());
  return all;
}

void append_tables_of_the_tracer(std::vector<Table>& all) {
  using T = TableMaker;
  all.push_back(T("modules", 2).with("module").with("tick").fields<ModuleRecord>().numbered());
  all.push_back(T("frames", 2).with("frame").with("tick").fields<FrameRecord>().numbered());
  all.push_back(
      T("sites", 2).with("site").with("tick").with("process").fields<SiteRecord>().numbered());
  all.push_back(
      T("site_frames", 2).with("site").with("depth").with("frame").keyed({"site", "depth"}));
  all.push_back(
      T("site_samples", 2).with("tick").with("site").fields<SiteSample>().keyed({"tick", "site"}));
  all.push_back(T("site_births", 2)
                    .with("site")
                    .with("place")
                    .with("tick")
                    .fields<SiteBirths::Birth>()
                    .keyed({"site", "place"}));
  all.push_back(T("trace_samples", 2)
                    .with("tick")
                    .with("process")
                    .fields<TraceSample>()
                    .keyed({"tick", "process"}));
  all.push_back(T("trace_accounts", 3)
                    .with("tick")
                    .with("process")
                    .fields<MemoryAccount>()
                    .keyed({"tick", "process"}));
  all.push_back(T("shm_growth", 3).with("tick").fields<ShmGrowthReport>().numbered());
  all.push_back(T("shm_segments", 3)
                    .with("tick")
                    .with("place")
                    .fields<GrowingSegment>()
                    .keyed({"tick", "place"}));
  all.push_back(
      T("gpu_states", 3).with("tick").with("gpu").fields<GpuState>().keyed({"tick", "gpu"}));
}

std::string create_sql(const Table& table) {
  std::string columns;
  std::vector<std::string_view> key;
  for (const Column& column : table.columns) {
    const bool is_row_number = table.has_rowid && column.primary_key > 0;
    columns +=
        fmt::format("{}{} {}{}", columns.empty() ? "" : ", ", column.name, column.type,
                    is_row_number ? " PRIMARY KEY" : (column.is_not_null ? " NOT NULL" : ""));
    if (column.primary_key > 0) {
      key.push_back(column.name);  // in the order of the columns, which is that of the key
    }
  }
  return table.has_rowid ? fmt::format("CREATE TABLE {}({})", table.name, columns)
                         : fmt::format("CREATE TABLE {}({}, PRIMARY KEY({})) WITHOUT ROWID",
                                       table.name, columns, fmt::join(key, ", "));
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
    " USING(frame) LEFT JOIN modules m USING(module);";

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
  for (const Column& column : table.columns) {
    if (column.since_version > version) {
      continue;
    }
    TIDEMARK_TRY_ASSIGN(const bool has_row, query.step());
    if (!has_row) {
      return false;  // step() has reset it
    }
    is_same = is_same && query.bytes(0) == column.name && query.bytes(1) == column.type &&
              (query.integer(2) != 0) == column.is_not_null &&
              query.integer(3) == column.primary_key;
  }
  TIDEMARK_TRY_ASSIGN(const bool has_more, query.step());
  query.reset();
  return is_same && !has_more;
}

}  // namespace

std::span<const Table> tables() {
  static const std::vector<Table> kAll = [] {
    std::vector<Table> all = tables_of_the_recording();
    append_tables_of_the_tracer(all);
    return all;
  }();
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
