// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/result.h"
#include "recording/sqlite.h"

namespace tidemark::recording {

// The rows of one table, in the order of ticks. Column 0 is the tick.
class TableCursor {
 public:
  static Result<TableCursor> open(Database& database, const std::string& sql);
  // Moves to the next row; at_end() afterwards when there is none.
  Status advance();
  bool at_end() const { return at_end_; }
  std::int64_t tick() const { return tick_; }
  const Statement& row() const { return statement_; }

  // Calls `load(row)` for each row up to `tick` and moves beyond them; ends with the first error.
  template <typename Load>
  Status take_rows(std::int64_t tick, Load load) {
    while (!at_end_ && tick_ <= tick) {
      if (Status status = load(row()); !status) {
        return status;
      }
      if (Status status = advance(); !status) {
        return status;
      }
    }
    return ok();
  }

 private:
  explicit TableCursor(Statement statement) : statement_(std::move(statement)) {}

  Statement statement_;
  std::int64_t tick_ = 0;
  bool at_end_ = false;
};

// Opens one cursor after the other and keeps the first error.
class CursorOpener {
 public:
  explicit CursorOpener(Database& database) : database_(database) {}

  std::optional<TableCursor> operator()(std::string_view table, std::string_view order);
  std::optional<TableCursor> open(const std::string& sql);
  const std::optional<Error>& error() const { return error_; }

 private:
  Database& database_;
  std::optional<Error> error_;
};

}  // namespace tidemark::recording
