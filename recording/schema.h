// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/result.h"
#include "recording/sqlite.h"

// The tables of a run file; docs/run-file.md explains them to the people who query them. A change
// of this file is a new kSchemaVersion.
namespace tidemark::recording {

inline constexpr std::int32_t kApplicationId = 0x54494445;  // "TIDE"
inline constexpr std::int32_t kSchemaVersion = 3;
// Files from this version on are read; a later version only adds tables to an earlier one.
inline constexpr std::int32_t kOldestSchemaVersion = 1;

struct Table {
  std::string_view name;
  std::string_view sql;  // exactly as SQLite keeps it in sqlite_schema
  std::int32_t since_version = 1;
};

// Readers rely on the order of the columns: see check_schema().
std::span<const Table> tables();

// Makes all tables and views and stamps the file as ours.
Status create_schema(Database& database);

// Every table of `version` is there and is exactly ours. This also keeps out a hostile file whose
// "table" is a view or a virtual table. Tables, views and indexes that the user added are fine.
Status check_schema(Database& database, std::int32_t version = kSchemaVersion);

// What the header of the file says, before SQLite looks at it.
enum class FileKind { kEmpty, kNotSqlite, kOtherDatabase, kOlderRun, kNewerRun, kRun };
inline constexpr std::size_t kSqliteHeaderBytes = 100;
// `head` is the start of the file, at least kSqliteHeaderBytes where the file has them.
FileKind classify_header(std::string_view head);

}  // namespace tidemark::recording
