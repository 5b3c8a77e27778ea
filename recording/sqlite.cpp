// SPDX-License-Identifier: Apache-2.0
#include "recording/sqlite.h"

#include <cerrno>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "common/text.h"

namespace tidemark::recording {
namespace {

// Limit for strings and rows of an untrusted file.
constexpr int kMaxValueBytes = 16 << 20;

bool is_storable_text(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = utf8_sequence_length(bytes);
    if (length == 0 || bytes.front() == '\0') {
      return false;
    }
    bytes.remove_prefix(length);
  }
  return true;
}

bool is_out_of_space(int sys_errno) {
  return sys_errno == ENOSPC || sys_errno == EDQUOT || sys_errno == EFBIG;
}

Errc code_of(int primary, int sys_errno) {
  switch (primary) {
    case SQLITE_FULL:
      return Errc::kNoSpace;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return Errc::kPermission;
    case SQLITE_CANTOPEN:
      return sys_errno == ENOENT ? Errc::kNotFound : Errc::kPermission;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // a missing table or column: not the schema that we expect
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
      return Errc::kMalformed;
    default:
      return is_out_of_space(sys_errno) ? Errc::kNoSpace : Errc::kIo;
  }
}

std::string describe(int primary, int sys_errno, const char* message) {
  if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED) {
    return "another program holds a lock on it";
  }
  if (is_out_of_space(sys_errno)) {
    return system_error("cannot write", sys_errno).what;
  }
  if (primary == SQLITE_FULL) {
    return system_error("cannot write", ENOSPC).what;
  }
  return sys_errno != 0 ? system_error(message, sys_errno).what : message;
}

// Before each call whose failure last_error() explains, so that it does not see an older errno.
void forget_errno() { errno = 0; }

Error last_error(sqlite3* db, const std::string& path) {
  const int primary = sqlite3_errcode(db) & 0xFF;
  // SQLite keeps the errno of the last failed system call, also when this failure is another one,
  // and forgets it when a COMMIT fails: then errno itself still has it, see forget_errno().
  const int errno_now = errno;
  const bool is_system_call = primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN;
  const int kept = sqlite3_system_errno(db);
  const int sys_errno = !is_system_call ? 0 : (kept != 0 ? kept : errno_now);
  return Error{code_of(primary, sys_errno),
               fmt::format("{}: {}", path, describe(primary, sys_errno, sqlite3_errmsg(db))),
               sys_errno};
}

// SQLite gives ":memory:", "" and (if so built) "file:..." a meaning of their own; a user's path
// is always a path.
std::string plain_path(const std::string& path) {
  return path.empty() || path.front() != '/' ? "./" + path : path;
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::note(int code) {
  if (code != SQLITE_OK) {
    bind_error_ = code;
  }
}

void Statement::bind(int index, std::int64_t value) {
  note(sqlite3_bind_int64(statement_.get(), index, value));
}

void Statement::bind(int index, double value) {
  note(sqlite3_bind_double(statement_.get(), index, value));
}

void Statement::bind_null(int index) { note(sqlite3_bind_null(statement_.get(), index)); }

void Statement::bind_bytes(int index, std::string_view bytes) {
  const char* data = bytes.data() == nullptr ? "" : bytes.data();  // nullptr would bind NULL
  note(is_storable_text(bytes)
           ? sqlite3_bind_text64(statement_.get(), index, data, bytes.size(), SQLITE_TRANSIENT,
                                 SQLITE_UTF8)
           : sqlite3_bind_blob64(statement_.get(), index, data, bytes.size(), SQLITE_TRANSIENT));
}

Result<bool> Statement::step() {
  if (bind_error_ != 0) {
    return Error{Errc::kIo, fmt::format("{}: {}", path_, sqlite3_errstr(bind_error_))};
  }
  forget_errno();
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) {
    return true;
  }
  if (code == SQLITE_DONE) {
    reset();
    return false;
  }
  Error error = last_error(sqlite3_db_handle(statement_.get()), path_);
  reset();
  return error;
}

Status Statement::run() {
  TIDEMARK_TRY(step());
  reset();
  return ok();
}

void Statement::reset() { sqlite3_reset(statement_.get()); }

int Statement::column_count() const { return sqlite3_column_count(statement_.get()); }

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

bool Statement::is_integer(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_INTEGER;
}

bool Statement::is_number(int column) const {
  return is_integer(column) || sqlite3_column_type(statement_.get(), column) == SQLITE_FLOAT;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string_view Statement::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (data == nullptr || size <= 0) {
    return {};
  }
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

void Database::Close::operator()(sqlite3* db) const { sqlite3_close_v2(db); }

Result<Database> Database::open(const std::string& path, Mode mode, const std::string& shown_as) {
  const int access = mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  sqlite3* raw = nullptr;
  forget_errno();
  const int code = sqlite3_open_v2(plain_path(path).c_str(), &raw, access | SQLITE_OPEN_NOMUTEX,
                                   /*zVfs=*/nullptr);
  Database database(raw, shown_as.empty() ? path : shown_as);
  if (raw == nullptr) {
    return Error{Errc::kIo, fmt::format("{}: out of memory", database.path()), ENOMEM};
  }
  if (code != SQLITE_OK) {
    return last_error(raw, database.path());
  }
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  // The schema of an untrusted file may hold triggers and functions: they must not run.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  if (mode == Mode::kReadOnly) {
    sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
  return database;
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  forget_errno();
  const int code = sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) {
    return last_error(db_.get(), path_);
  }
  return Statement(raw, path_);
}

Status Database::execute(const std::string& sql) {
  forget_errno();
  if (sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return last_error(db_.get(), path_);
  }
  return ok();
}

Result<std::string> Database::query_text(std::string_view sql) {
  TIDEMARK_TRY_ASSIGN(auto statement, prepare(sql));
  TIDEMARK_TRY_ASSIGN(const bool has_row, statement.step());
  return has_row ? std::string(statement.bytes(0)) : std::string();
}

Result<std::int64_t> Database::query_integer(std::string_view sql) {
  TIDEMARK_TRY_ASSIGN(auto statement, prepare(sql));
  TIDEMARK_TRY_ASSIGN(const bool has_row, statement.step());
  return has_row ? statement.integer(0) : 0;
}

void Database::set_busy_timeout(int milliseconds) { sqlite3_busy_timeout(db_.get(), milliseconds); }

int loaded_sqlite_version() { return sqlite3_libversion_number(); }

Status check_sqlite_version(int library_version) {
  if (library_version >= kMinimumSqliteVersion) {
    return ok();
  }
  return Error{Errc::kUnsupported,
               fmt::format("the SQLite library that was loaded is version {}.{}.{}; run files need "
                           "3.22.0 or newer",
                           library_version / 1000000, library_version / 1000 % 1000,
                           library_version % 1000)};
}

}  // namespace tidemark::recording
