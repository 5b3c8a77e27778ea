// SPDX-License-Identifier: Apache-2.0
#include "recording/table_cursor.h"

#include <fmt/format.h>

namespace tidemark::recording {

Result<TableCursor> TableCursor::open(Database& database, const std::string& sql) {
  auto statement = database.prepare(sql);
  if (!statement) {
    return statement.error();
  }
  TableCursor cursor(std::move(*statement));
  if (const Status status = cursor.advance(); !status) {
    return status.error();
  }
  return cursor;
}

Status TableCursor::advance() {
  if (at_end_) {
    return ok();  // stepping on would start the query anew
  }
  const auto row = statement_.step();
  if (!row) {
    at_end_ = true;
    return row.error();
  }
  at_end_ = !*row;
  tick_ = at_end_ ? 0 : statement_.integer(0);
  return ok();
}

std::optional<TableCursor> CursorOpener::operator()(std::string_view table,
                                                    std::string_view order) {
  return open(fmt::format("SELECT tick, * FROM {} ORDER BY {}", table, order));
}

std::optional<TableCursor> CursorOpener::open(const std::string& sql) {
  if (error_) {
    return std::nullopt;
  }
  auto cursor = TableCursor::open(database_, sql);
  if (!cursor) {
    error_ = cursor.error();
    return std::nullopt;
  }
  return std::move(*cursor);
}

}  // namespace tidemark::recording
