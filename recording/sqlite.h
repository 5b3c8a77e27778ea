// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tidemark::recording {

// A prepared statement. Must not outlive its Database; not thread-safe.
class Statement {
 public:
  // Parameters count from 1. A failed bind is reported by the next step() or run().
  void bind(int index, std::int64_t value);
  void bind(int index, double value);  // not a number becomes NULL
  void bind_null(int index);
  // Text when it is valid UTF-8 without NUL, a blob otherwise: names are untrusted bytes, and
  // sqlite's users (Python's sqlite3, for one) refuse text that is not UTF-8.
  void bind_bytes(int index, std::string_view bytes);

  // True: a row is there. False: done; the statement is reset and keeps its bindings.
  Result<bool> step();
  // For statements without rows.
  Status run();
  void reset();

  // Columns of the current row, counted from 0.
  int column_count() const;
  bool is_null(int column) const;
  bool is_integer(int column) const;
  bool is_number(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string_view bytes(int column) const;  // valid until the next step

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3_stmt* statement, std::string path)
      : statement_(statement), path_(std::move(path)) {}
  void note(int code);

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  std::string path_;
  int bind_error_ = 0;
};

// A connection to one database file; closes it when destroyed. Not thread-safe. Errors name the
// path.
class Database {
 public:
  enum class Mode {
    kReadOnly,   // never writes to the file and never moves its write-ahead log into it
    kReadWrite,  // the file exists already
  };
  // `shown_as` is the name that errors give it, when that is not `path`.
  static Result<Database> open(const std::string& path, Mode mode,
                               const std::string& shown_as = {});

  Result<Statement> prepare(std::string_view sql);
  // One or more statements whose rows do not matter.
  Status execute(const std::string& sql);
  // The first column of the first row.
  Result<std::string> query_text(std::string_view sql);
  Result<std::int64_t> query_integer(std::string_view sql);
  // How long a statement waits for another program's lock before it fails.
  void set_busy_timeout(int milliseconds);

  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  Database(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}

  std::unique_ptr<sqlite3, Close> db_;
  std::string path_;
};

// The oldest SQLite that we work with: it reads a write-ahead log through a read-only connection.
inline constexpr int kMinimumSqliteVersion = 3022000;  // as sqlite3_libversion_number() has it
// An Error when the library that was loaded is older than that.
Status check_sqlite_version(int library_version);
int loaded_sqlite_version();

}  // namespace tidemark::recording
