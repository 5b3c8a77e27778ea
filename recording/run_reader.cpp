// SPDX-License-Identifier: Apache-2.0
#include "recording/run_reader.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "recording/files.h"
#include "recording/rows.h"
#include "recording/schema.h"
#include "recording/sqlite.h"
#include "recording/tick_cursor.h"

namespace tidemark::recording {

namespace {

// A recorder locks readers out only for a moment when it starts and when it ends.
constexpr int kBusyTimeoutMs = 5'000;

Status describe_kind(FileKind kind, const std::string& name) {
  switch (kind) {
    case FileKind::kRun:
      return ok();
    case FileKind::kEmpty:
      return Error{Errc::kMalformed, fmt::format("{} is empty", name)};
    case FileKind::kOlderRun:
      return Error{Errc::kUnsupported,
                   fmt::format("{} was written by an older tidemark whose run files this version "
                               "(schema {}) does not read; export it with the tidemark that "
                               "recorded it",
                               name, kSchemaVersion)};
    case FileKind::kNewerRun:
      return Error{Errc::kUnsupported,
                   fmt::format("{} was written by a newer tidemark; this version reads schema {}. "
                               "Update tidemark to read it",
                               name, kSchemaVersion)};
    case FileKind::kOtherDatabase:
      return Error{Errc::kMalformed,
                   fmt::format("{} is an SQLite database, but not a tidemark run file", name)};
    case FileKind::kNotSqlite:
      break;
  }
  return Error{Errc::kMalformed, fmt::format("{} is not a tidemark run file", name)};
}

// A file that lost its end, for example in a copy. With a log beside it the log may hold the rest.
Status check_complete(std::string_view head, std::int64_t size, const std::string& name) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::int64_t>(static_cast<unsigned char>(head[i]));
  };
  std::int64_t page_bytes = byte(16) << 8 | byte(17);
  page_bytes = page_bytes == 1 ? 65536 : page_bytes;  // 65536 does not fit in its two bytes
  const std::int64_t pages = byte(28) << 24 | byte(29) << 16 | byte(30) << 8 | byte(31);
  if (size >= pages * page_bytes) {
    return ok();
  }
  return Error{Errc::kMalformed, fmt::format("{} is truncated: it has {} of {} bytes; copy it "
                                             "again from where it was recorded",
                                             name, size, pages * page_bytes)};
}

// All that can be checked without SQLite.
Status check_file(const std::string& path, const std::string& name) {
  TIDEMARK_TRY_ASSIGN(const auto fd, open_file(path, O_RDONLY));
  std::array<char, kSqliteHeaderBytes> buffer{};
  const auto n = pread_full(fd.get(), buffer);
  if (!n) {
    return named(name, n.error());
  }
  const std::string_view head(buffer.data(), *n);
  TIDEMARK_TRY(describe_kind(classify_header(head), name));
  struct stat info {};
  ::fstat(fd.get(), &info);
  return file_exists(path + "-wal") ? ok() : check_complete(head, info.st_size, name);
}

// A log cannot be read in place where SQLite may not make its index (read-only folder, full disk),
// nor can a file that was copied without its log; a journal that a recorder left when it was killed
// while closing has to be rolled back.
bool may_help_to_copy(const std::string& path, const Error& error) {
  return error.code == Errc::kPermission ||
         (error.code != Errc::kMalformed &&
          (file_exists(path + "-wal") || file_exists(path + "-journal")));
}

}  // namespace

Result<std::unique_ptr<RecordingReader>> RunReader::open(const std::string& path,
                                                         const std::string& shown_as) {
  const std::string& name = shown_as.empty() ? path : shown_as;
  TIDEMARK_TRY(check_sqlite_version(loaded_sqlite_version()));
  TIDEMARK_TRY(check_file(path, name));
  TIDEMARK_TRY(check_companions(path));
  const auto recording_pid = process_that_has_open(path);
  auto reader = open_database(std::nullopt, path, name, Database::Mode::kReadOnly);
  if (!reader && may_help_to_copy(path, reader.error())) {
    reader = open_copy(path, name, reader.error());
  }
  if (!reader) {
    return reader.error();
  }
  if (!(*reader)->info_.ended_cleanly) {
    (*reader)->notes_.push_back(
        recording_pid ? fmt::format("the file is still in use by process {}: this is what was "
                                    "recorded so far",
                                    *recording_pid)
                      : "the recording did not end cleanly: its end is missing");
  }
  return std::unique_ptr<RecordingReader>(std::move(*reader));
}

Result<std::unique_ptr<RecordingReader>> RunReader::open_spooled(PrivateDir directory,
                                                                 const std::string& file,
                                                                 const std::string& shown_as) {
  auto reader = open(directory.file(file), shown_as);
  if (reader) {
    static_cast<RunReader&>(**reader).directory_.emplace(std::move(directory));
  }
  return reader;
}

Result<std::unique_ptr<RunReader>> RunReader::open_copy(const std::string& path,
                                                        const std::string& shown_as,
                                                        const Error& why) {
  TIDEMARK_TRY_ASSIGN(auto directory, copy_run(path));
  const std::string copy = directory.file("run");
  auto reader = open_database(std::move(directory), copy, shown_as, Database::Mode::kReadWrite);
  if (reader) {
    (*reader)->notes_.push_back(
        fmt::format("read from a private copy, because it cannot be read in place ({})", why.what));
  }
  return reader;
}

Result<std::unique_ptr<RunReader>> RunReader::open_database(std::optional<PrivateDir> directory,
                                                            const std::string& path,
                                                            const std::string& shown_as,
                                                            Database::Mode mode) {
  TIDEMARK_TRY_ASSIGN(auto database, Database::open(path, mode, shown_as));
  database.set_busy_timeout(kBusyTimeoutMs);
  // One transaction for all that follows. Sorting happens in memory: /tmp may be the full disk.
  TIDEMARK_TRY(
      database.execute("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;"
                       "PRAGMA temp_store=MEMORY; PRAGMA query_only=ON; BEGIN"));
  // Its header was looked at before; this is what SQLite and the log make of it.
  TIDEMARK_TRY_ASSIGN(const auto version, database.query_integer("PRAGMA user_version"));
  const auto schema_version = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(version, kOldestSchemaVersion, kSchemaVersion));
  TIDEMARK_TRY(check_schema(database, schema_version));
  std::unique_ptr<RunReader> reader(new RunReader(std::move(directory), std::move(database)));
  reader->schema_version_ = schema_version;
  TIDEMARK_TRY(reader->load_info());
  return reader;
}

Status RunReader::load_info() {
  TIDEMARK_TRY_ASSIGN(
      auto query, database_.prepare(select_sql("run", "end_s", "WHERE id = 1", schema_version_)));
  TIDEMARK_TRY_ASSIGN(const bool has_row, query.step());
  RowLoader loader(query, 2, schema_version_);
  if (has_row) {
    loader.load<RunInfo>(info_);
  }
  if (!has_row || !loader.is_valid()) {
    return Error{Errc::kMalformed,
                 fmt::format("{} is damaged: it does not say what was recorded", database_.path())};
  }
  if (query.is_number(0)) {
    end_s_ = query.real(0);
  }
  info_.ended_cleanly = end_s_.has_value();
  return ok();
}

namespace {

// Delivers what a cursor yields and counts it.
class Delivery {
 public:
  Delivery(TickCursor& cursor, RecordingSink& sink) : cursor_(cursor), sink_(sink) {}

  Status run() {
    Tick tick;
    while (true) {
      const auto more = cursor_.next(tick);
      if (!more) {
        return incomplete(more.error());
      }
      if (!*more) {
        return ends_before(std::numeric_limits<double>::infinity());
      }
      TIDEMARK_TRY(ends_before(tick.t_s));
      TIDEMARK_TRY(sink_.add(tick));
      ++summary_.ticks;
      summary_.samples += tick.processes.size();
      last_t_s_ = tick.t_s;
    }
  }
  double last_t_s() const { return last_t_s_; }
  ReadSummary& summary() { return summary_; }

 private:
  Status ends_before(double t_s) {
    while (true) {
      const auto process = cursor_.next_ended(t_s);
      if (!process) {
        return incomplete(process.error());
      }
      if (!process->has_value()) {
        return ok();
      }
      TIDEMARK_TRY(sink_.process_ended(**process));
    }
  }

  Error incomplete(Error error) const {
    error.what += fmt::format("; {} ticks before the damage (up to {:.1f} s) were read",
                              summary_.ticks, last_t_s_);
    return error;
  }

  TickCursor& cursor_;
  RecordingSink& sink_;
  ReadSummary summary_;
  double last_t_s_ = 0.0;
};

}  // namespace

Result<ReadSummary> RunReader::read(RecordingSink& sink) {
  TIDEMARK_TRY_ASSIGN(auto cursor, TickCursor::open(database_, schema_version_));
  TIDEMARK_TRY(sink.begin(info_));
  Delivery delivery(cursor, sink);
  TIDEMARK_TRY(delivery.run());
  TIDEMARK_TRY(sink.end(end_s_.value_or(delivery.last_t_s())));
  ReadSummary summary = std::move(delivery.summary());
  summary.notes = notes_;
  for (const std::string& name : cursor.unknown_names()) {
    summary.notes.push_back(fmt::format("'{}' is not known to this version of tidemark", name));
  }
  return summary;
}

namespace {

// The first tick at or after `t_s`; beyond the last when there is none. Time rises with the number
// of the tick, and only that has an index.
Result<std::int64_t> first_tick_from(Statement& probe, std::int64_t last, double t_s) {
  std::int64_t low = 0;
  std::int64_t high = last + 1;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    probe.bind(1, middle);
    TIDEMARK_TRY_ASSIGN(const bool has_row, probe.step());
    const bool is_before = has_row && probe.real(0) < t_s;
    probe.reset();
    if (is_before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Result<std::vector<WindowPoint>> read_rows(Statement& rows, double from_s, double to_s,
                                           std::size_t most) {
  std::vector<WindowPoint> points;
  const double stretch = (to_s - from_s) / static_cast<double>(std::max<std::size_t>(1, most));
  while (true) {
    TIDEMARK_TRY_ASSIGN(const bool has_row, rows.step());
    if (!has_row) {
      return points;
    }
    const double t_s = rows.real(0);
    const double bytes = rows.is_null(1) ? rows.real(2) : rows.real(1);
    if (t_s > to_s) {
      continue;
    }
    if (!points.empty() && t_s - points.back().t_s < stretch) {
      points.back().min_bytes = std::min(points.back().min_bytes, bytes);
      points.back().max_bytes = std::max(points.back().max_bytes, bytes);
    } else {
      points.push_back({t_s, bytes, bytes});
    }
  }
}

}  // namespace

Result<std::vector<WindowPoint>> read_tree_window(const std::string& path, double from_s,
                                                  double to_s, std::size_t most) {
  TIDEMARK_TRY_ASSIGN(auto database, Database::open(path, Database::Mode::kReadOnly));
  TIDEMARK_TRY_ASSIGN(auto last, database.query_integer("SELECT ifnull(max(tick), -1) FROM ticks"));
  TIDEMARK_TRY_ASSIGN(
      auto probe, database.prepare("SELECT t_s FROM ticks WHERE tick >= ?1 ORDER BY tick LIMIT 1"));
  TIDEMARK_TRY_ASSIGN(const auto first, first_tick_from(probe, last, from_s));
  TIDEMARK_TRY_ASSIGN(const auto end, first_tick_from(probe, last, to_s));
  TIDEMARK_TRY_ASSIGN(
      auto rows,
      database.prepare(
          "SELECT t.t_s, g.footprint_bytes, g.rss_bytes FROM ticks t JOIN group_samples g"
          " ON g.tick = t.tick AND g.who = 'tree' WHERE t.tick BETWEEN ?1 AND ?2 ORDER BY t.tick"));
  rows.bind(1, first);
  rows.bind(2, end);
  return read_rows(rows, from_s, to_s, most);
}

}  // namespace tidemark::recording
