// SPDX-License-Identifier: Apache-2.0
#include "recording/schema.h"

#include <array>
#include <cstddef>

#include <fmt/format.h>

namespace tidemark::recording {
namespace {

constexpr std::array<Table, 23> kTables{{
    {"run",
     "CREATE TABLE run(id INTEGER PRIMARY KEY, tool_version TEXT NOT NULL, host TEXT NOT NULL,"
     " kernel TEXT NOT NULL, command TEXT NOT NULL, format TEXT NOT NULL, start_wall_ns INTEGER,"
     " physical_bytes INTEGER, limit_bytes INTEGER, limit_source TEXT NOT NULL, interval_s REAL,"
     " time_is_steps INTEGER NOT NULL, end_s REAL)"},
    {"ticks",
     "CREATE TABLE ticks(tick INTEGER PRIMARY KEY, t_s REAL NOT NULL, late_s REAL NOT NULL,"
     " step INTEGER, epoch INTEGER, write_late_s REAL)"},
    {"processes",
     "CREATE TABLE processes(process INTEGER PRIMARY KEY, tick INTEGER NOT NULL,"
     " pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL, ppid INTEGER NOT NULL,"
     " role TEXT NOT NULL, rank INTEGER, comm TEXT NOT NULL, argv TEXT NOT NULL,"
     " born_s REAL NOT NULL, died_s REAL, exit_status INTEGER)"},
    {"process_samples",
     "CREATE TABLE process_samples(tick INTEGER NOT NULL, process INTEGER NOT NULL,"
     " rss_bytes INTEGER, rss_anon_bytes INTEGER, rss_file_bytes INTEGER,"
     " rss_shmem_bytes INTEGER, swap_bytes INTEGER, hwm_bytes INTEGER, pss_bytes INTEGER,"
     " pss_footprint_bytes INTEGER, uss_bytes INTEGER, pss_age_s REAL, threads INTEGER,"
     " state TEXT NOT NULL, PRIMARY KEY(tick, process)) WITHOUT ROWID"},
    {"group_samples",
     "CREATE TABLE group_samples(tick INTEGER NOT NULL, who TEXT NOT NULL,"
     " processes INTEGER NOT NULL, rss_bytes INTEGER NOT NULL, swap_bytes INTEGER NOT NULL,"
     " footprint_bytes INTEGER, footprint_held INTEGER NOT NULL, pss_bytes INTEGER,"
     " unreadable INTEGER NOT NULL, PRIMARY KEY(tick, who)) WITHOUT ROWID"},
    {"system_samples",
     "CREATE TABLE system_samples(tick INTEGER PRIMARY KEY, total_bytes INTEGER,"
     " available_bytes INTEGER, swap_total_bytes INTEGER, swap_free_bytes INTEGER,"
     " shmem_bytes INTEGER, psi_some_avg10 REAL, psi_full_avg10 REAL, cgroup_used_bytes INTEGER,"
     " cgroup_limit_bytes INTEGER, cgroup_psi_some_avg10 REAL, cgroup_psi_full_avg10 REAL,"
     " dev_shm_bytes INTEGER, dev_shm_unheld_bytes INTEGER, dev_shm_segments INTEGER)"},
    {"gpus", "CREATE TABLE gpus(gpu INTEGER PRIMARY KEY, name TEXT NOT NULL)"},
    {"gpu_samples",
     "CREATE TABLE gpu_samples(tick INTEGER NOT NULL, gpu INTEGER NOT NULL, used_bytes INTEGER,"
     " total_bytes INTEGER, PRIMARY KEY(tick, gpu)) WITHOUT ROWID"},
    {"gpu_process_samples",
     "CREATE TABLE gpu_process_samples(tick INTEGER NOT NULL, gpu INTEGER NOT NULL,"
     " pid INTEGER NOT NULL, used_bytes INTEGER, PRIMARY KEY(tick, gpu, pid)) WITHOUT ROWID"},
    {"markers",
     "CREATE TABLE markers(marker INTEGER PRIMARY KEY, tick INTEGER NOT NULL, t_s REAL NOT NULL,"
     " pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL, kind TEXT NOT NULL,"
     " value INTEGER NOT NULL, name TEXT NOT NULL)"},
    {"events",
     "CREATE TABLE events(event INTEGER PRIMARY KEY, tick INTEGER NOT NULL, t_s REAL NOT NULL,"
     " kind TEXT NOT NULL, pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL,"
     " detail TEXT NOT NULL, count INTEGER NOT NULL)"},
    {"losses",
     "CREATE TABLE losses(loss INTEGER PRIMARY KEY, tick INTEGER NOT NULL, t_s REAL NOT NULL,"
     " what TEXT NOT NULL, count INTEGER NOT NULL)"},
    {"modules",
     "CREATE TABLE modules(module INTEGER PRIMARY KEY, tick INTEGER NOT NULL, path TEXT NOT NULL,"
     " build_id TEXT NOT NULL)",
     2},
    {"frames",
     "CREATE TABLE frames(frame INTEGER PRIMARY KEY, tick INTEGER NOT NULL, kind TEXT NOT NULL,"
     " module INTEGER, module_offset INTEGER NOT NULL, function TEXT NOT NULL, file TEXT NOT NULL,"
     " line INTEGER, is_inlined INTEGER NOT NULL)",
     2},
    {"sites",
     "CREATE TABLE sites(site INTEGER PRIMARY KEY, tick INTEGER NOT NULL,"
     " process INTEGER NOT NULL, kind TEXT NOT NULL, is_truncated INTEGER NOT NULL)",
     2},
    {"site_frames",
     "CREATE TABLE site_frames(site INTEGER NOT NULL, depth INTEGER NOT NULL,"
     " frame INTEGER NOT NULL, PRIMARY KEY(site, depth)) WITHOUT ROWID",
     2},
    {"site_samples",
     "CREATE TABLE site_samples(tick INTEGER NOT NULL, site INTEGER NOT NULL,"
     " live_bytes INTEGER NOT NULL, live_blocks INTEGER NOT NULL, alloc_bytes INTEGER NOT NULL,"
     " alloc_blocks INTEGER NOT NULL, peak_bytes INTEGER NOT NULL,"
     " temporary_blocks INTEGER NOT NULL, resident_bytes INTEGER,"
     " PRIMARY KEY(tick, site)) WITHOUT ROWID",
     2},
    {"site_births",
     "CREATE TABLE site_births(site INTEGER NOT NULL, place INTEGER NOT NULL,"
     " tick INTEGER NOT NULL, in_steps INTEGER NOT NULL, born REAL NOT NULL,"
     " live_bytes INTEGER NOT NULL, PRIMARY KEY(site, place)) WITHOUT ROWID",
     2},
    {"trace_samples",
     "CREATE TABLE trace_samples(tick INTEGER NOT NULL, process INTEGER NOT NULL,"
     " t_s REAL NOT NULL, mode TEXT NOT NULL, sample_every_bytes INTEGER, sites INTEGER NOT NULL,"
     " live_bytes INTEGER NOT NULL, live_blocks INTEGER NOT NULL, rest_bytes INTEGER NOT NULL,"
     " rest_blocks INTEGER NOT NULL, freed_blocks INTEGER NOT NULL,"
     " unknown_frees INTEGER NOT NULL, dropped_records INTEGER NOT NULL,"
     " truncated_stacks INTEGER NOT NULL, empty_stacks INTEGER NOT NULL,"
     " file_bytes INTEGER NOT NULL, private_bytes INTEGER NOT NULL, has_ended INTEGER NOT NULL,"
     " problem TEXT NOT NULL, PRIMARY KEY(tick, process)) WITHOUT ROWID",
     2},
    {"trace_accounts",
     "CREATE TABLE trace_accounts(tick INTEGER NOT NULL, process INTEGER NOT NULL,"
     " t_s REAL NOT NULL, blocks_bytes INTEGER NOT NULL, slack_bytes INTEGER NOT NULL,"
     " unhooked_bytes INTEGER NOT NULL, tracer_bytes INTEGER NOT NULL,"
     " PRIMARY KEY(tick, process)) WITHOUT ROWID",
     3},
    {"shm_growth",
     "CREATE TABLE shm_growth(tick INTEGER PRIMARY KEY, growth_bytes INTEGER NOT NULL,"
     " segments INTEGER NOT NULL)",
     3},
    {"shm_segments",
     "CREATE TABLE shm_segments(tick INTEGER NOT NULL, place INTEGER NOT NULL,"
     " path TEXT NOT NULL, bytes INTEGER NOT NULL, growth_bytes INTEGER NOT NULL, held INTEGER,"
     " maker_pid INTEGER, PRIMARY KEY(tick, place)) WITHOUT ROWID",
     3},
    {"gpu_states",
     "CREATE TABLE gpu_states(tick INTEGER NOT NULL, gpu INTEGER NOT NULL, reserved_bytes INTEGER,"
     " busy_percent INTEGER, age_s REAL NOT NULL, is_lost INTEGER NOT NULL,"
     " PRIMARY KEY(tick, gpu)) WITHOUT ROWID",
     3},
}};

// For people; our own reader does not use them.
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

}  // namespace

std::span<const Table> tables() { return kTables; }

Status create_schema(Database& database) {
  std::string sql = "BEGIN;";
  for (const Table& table : kTables) {
    sql += fmt::format("{};", table.sql);
  }
  sql += kViews;
  sql += fmt::format("PRAGMA application_id={};PRAGMA user_version={};COMMIT;", kApplicationId,
                     kSchemaVersion);
  return database.execute(sql);
}

Status check_schema(Database& database, std::int32_t version) {
  auto query = database.prepare("SELECT type, sql FROM sqlite_master WHERE name = ?1");
  if (!query) {
    return query.error();
  }
  for (const Table& table : kTables) {
    if (table.since_version > version) {
      continue;
    }
    query->bind_bytes(1, table.name);
    const auto row = query->step();
    if (!row) {
      return row.error();
    }
    if (!*row || query->bytes(0) != "table" || query->bytes(1) != table.sql) {
      return Error{Errc::kMalformed,
                   fmt::format("{}: its table '{}' is missing or was altered; this is not a run "
                               "file as tidemark writes it",
                               database.path(), table.name)};
    }
    query->reset();
  }
  return ok();
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
