// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/record_fields.h"
#include "common/result.h"
#include "recording/sqlite.h"

// The tables of a run file; docs/run-file.md documents them for users who query them. Most of
// their columns come from the lists of common/record_fields.h.
namespace tidemark::recording {

inline constexpr std::int32_t kApplicationId = 0x54494445;  // "TIDE"
inline constexpr std::int32_t kSchemaVersion = kRunSchemaVersion;
// Files from this version on are read; a later version only adds tables and columns.
inline constexpr std::int32_t kOldestSchemaVersion = 1;

struct Column {
  std::string name;
  std::string_view type;  // "INTEGER", "REAL" or "TEXT"
  bool is_not_null = false;
  std::int32_t since_version = 1;
};

struct Table {
  std::string_view name;
  std::vector<Column> columns;
  std::size_t key_columns = 0;  // so many are the key; 0: the first is the number of the row
  std::int32_t since_version = 1;
};

std::span<const Table> tables();
const Table& table_named(std::string_view name);  // there is one

// Creates all tables and views and sets the application id and the version.
Status create_schema(Database& database);

// Every table of `version` is there and has exactly the columns that it had in that version. This
// also keeps out a hostile file whose "table" is a view or a virtual table. Tables, views and
// indexes that the user added are fine.
Status check_schema(Database& database, std::int32_t version = kSchemaVersion);

// "INSERT OR REPLACE INTO ticks VALUES(?,?,...)": a parameter for each column. `verb` is what comes
// before INTO.
std::string insert_sql(std::string_view table, std::string_view verb = "INSERT OR REPLACE");
// "SELECT first, ... FROM ticks rest": `first`, and then each column that `version` has.
std::string select_sql(std::string_view table, std::string_view first, std::string_view rest,
                       std::int32_t version);

// What the header of the file says, before SQLite opens it.
enum class FileKind { kEmpty, kNotSqlite, kOtherDatabase, kOlderRun, kNewerRun, kRun };
inline constexpr std::size_t kSqliteHeaderBytes = 100;
// `head` is the start of the file, at least kSqliteHeaderBytes where the file has them.
FileKind classify_header(std::string_view head);

}  // namespace tidemark::recording
