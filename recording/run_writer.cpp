// SPDX-License-Identifier: Apache-2.0
#include "recording/run_writer.h"

#include <algorithm>
#include <cerrno>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "recording/rows.h"
#include "recording/schema.h"

namespace tidemark::recording {
namespace {

// Long enough for a reader that is just finishing, short enough for a user who waits at the end.
constexpr int kCloseTimeoutMs = 2'000;

Status insert_run(Database& database, const RunInfo& info) {
  TIDEMARK_TRY_ASSIGN(auto statement, database.prepare(insert_sql("run", "INSERT")));
  return insert(statement, info, 1);
}

}  // namespace

Result<std::unique_ptr<RunWriter>> RunWriter::create(const std::string& path,
                                                     RunWriterOptions options) {
  if (path == "-") {
    return Error{Errc::kUsage, "a recording needs a file: it cannot be written to standard output"};
  }
  const FileSizeSignalBlock no_signal;
  TIDEMARK_TRY(check_sqlite_version(loaded_sqlite_version()));
  TIDEMARK_TRY_ASSIGN(auto pending, PendingFile::create(path, options.replace));
  TIDEMARK_TRY_ASSIGN(auto database,
                      Database::open(pending.temporary_path(), Database::Mode::kReadWrite, path));
  // Nobody sees the file yet: no journal is needed to protect it.
  TIDEMARK_TRY(database.execute("PRAGMA journal_mode=MEMORY"));
  TIDEMARK_TRY(create_schema(database));
  return std::unique_ptr<RunWriter>(
      new RunWriter(std::move(pending), std::move(database), options));
}

RunWriter::~RunWriter() {
  const FileSizeSignalBlock no_signal;  // closing may still move the log into the file
  ticks_.reset();
  database_.reset();
}

Status RunWriter::begin(const RunInfo& info) {
  const FileSizeSignalBlock no_signal;
  if (failure_) {
    return *failure_;
  }
  TIDEMARK_CHECK(pending_.has_value(), "begin() is called once");
  Status status = publish(info);
  return status ? status : fail(status.error());
}

Status RunWriter::publish(const RunInfo& info) {
  TIDEMARK_TRY(insert_run(*database_, info));
  database_.reset();  // SQLite must not have the file open while it moves
  const Fd lock = lock_folder_of(pending_->path());
  TIDEMARK_TRY(pending_->publish());
  pending_.reset();
  return open_published();
}

Status RunWriter::open_published() {
  TIDEMARK_TRY_ASSIGN(database_, Database::open(path_, Database::Mode::kReadWrite));
  database_->set_busy_timeout(options_.busy_timeout_ms);
  TIDEMARK_TRY_ASSIGN(const auto mode, database_->query_text("PRAGMA journal_mode=WAL"));
  if (mode != "wal") {
    return Error{Errc::kUnsupported,
                 fmt::format("{}: this file system cannot hold a write-ahead log; record to a "
                             "local disk",
                             path_)};
  }
  TIDEMARK_TRY(database_->execute("PRAGMA synchronous=NORMAL"));
  // The first query takes the lock by which other processes see that the file is in use.
  TIDEMARK_TRY(database_->query_integer("SELECT id FROM run"));
  TIDEMARK_TRY_ASSIGN(ticks_, TickWriter::prepare(*database_));
  if (::stat(path_.c_str(), &identity_) != 0) {
    return system_error(fmt::format("cannot look at {}", path_), errno);
  }
  return ok();
}

Status RunWriter::add(const Tick& tick) {
  const FileSizeSignalBlock no_signal;
  if (failure_) {
    return *failure_;
  }
  TIDEMARK_CHECK(ticks_.has_value(), "add() comes after begin() and before end()");
  if (const Status there = check_still_there(); !there) {
    return fail(there.error());
  }
  Status status = in_transaction([&] { return write_tick(tick); });
  if (!status) {
    return fail(status.error());
  }
  ++committed_ticks_;
  last_t_s_ = tick.t_s;
  return status;
}

Status RunWriter::process_ended(const ProcessRecord& process) {
  if (failure_) {
    return *failure_;
  }
  ended_.push_back(process);
  return ok();
}

Status RunWriter::end(double t_s) {
  const FileSizeSignalBlock no_signal;
  if (failure_) {
    return *failure_;
  }
  TIDEMARK_CHECK(ticks_.has_value(), "end() comes after begin() and is called once");
  if (const Status there = check_still_there(); !there) {
    return fail(there.error());
  }
  if (const Status status = in_transaction([&] { return write_run_end(t_s); }); !status) {
    return fail(status.error());
  }
  ticks_.reset();
  database_->set_busy_timeout(kCloseTimeoutMs);
  // As much as others let us goes into the file in any case, so that a copy of it alone is of use.
  static_cast<void>(database_->execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  const auto mode = database_->query_text("PRAGMA journal_mode=DELETE");
  is_one_file_ = mode && *mode == "delete";
  database_.reset();
  // A reader that keeps the log open is no failure: all is committed. A full disk is none either,
  // for the same reason.
  return ok();
}

template <typename Work>
Status RunWriter::in_transaction(Work work) {
  Status status = database_->execute("BEGIN IMMEDIATE");
  if (!status) {
    return status;
  }
  if (write_late_s_) {
    status = ticks_->write_lateness(*write_late_s_);
  }
  if (status) {
    status = work();
  }
  if (status) {
    status = database_->execute("COMMIT");
  }
  if (!status) {
    // Its own failure adds nothing: SQLite has then rolled back by itself.
    static_cast<void>(database_->execute("ROLLBACK"));
    return status;
  }
  ended_.clear();
  write_late_s_.reset();
  return status;
}

// Ends go first, so that a file holds them in order; but a process that came and went while ticks
// were dropped is introduced by this tick, and cannot end before.
Status RunWriter::write_tick(const Tick& tick) {
  std::unordered_set<ProcessKey> introduced;
  for (const ProcessRecord& process : tick.new_processes) {
    introduced.insert(process.key);
  }
  const auto first_after = std::stable_partition(
      ended_.begin(), ended_.end(),
      [&](const ProcessRecord& process) { return !introduced.contains(process.key); });
  Status status = write_ends({ended_.begin(), first_after});
  if (status) {
    status = ticks_->write(tick);
  }
  return status ? write_ends({first_after, ended_.end()}) : status;
}

Status RunWriter::write_ends(std::span<const ProcessRecord> ended) {
  for (const ProcessRecord& process : ended) {
    TIDEMARK_TRY(ticks_->write_end(process));
  }
  return ok();
}

Status RunWriter::write_run_end(double t_s) {
  TIDEMARK_TRY(write_ends(ended_));
  TIDEMARK_TRY_ASSIGN(auto statement, database_->prepare("UPDATE run SET end_s = ?1"));
  statement.bind(1, t_s);
  return statement.run();
}

// A file that was moved has lost its log, and one that was removed disappears on close: writing on
// would lose the recording without a message.
Status RunWriter::check_still_there() const {
  struct stat now {};
  if (::stat(path_.c_str(), &now) == 0 && now.st_dev == identity_.st_dev &&
      now.st_ino == identity_.st_ino) {
    return ok();
  }
  return Error{Errc::kGone, fmt::format("{} was moved, removed or replaced", path_)};
}

Status RunWriter::fail(const Error& error) {
  failure_ = error;
  if (error.code == Errc::kGone) {
    failure_->what += "; recording stopped";
  } else if (committed_ticks_ > 0) {
    failure_->what += fmt::format("; recording stopped, the {} ticks up to {:.1f} s stay readable",
                                  committed_ticks_, last_t_s_);
  }
  return *failure_;
}

}  // namespace tidemark::recording
