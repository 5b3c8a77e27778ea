// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "common/result.h"
#include "recording/columns.h"
#include "recording/sqlite.h"

// What the writers of a run file share.
namespace tidemark::recording {

// Prepares one statement after the other and keeps the first error.
class Preparer {
 public:
  explicit Preparer(Database& database) : database_(database) {}

  std::optional<Statement> operator()(std::string_view sql) {
    if (error_) {
      return std::nullopt;
    }
    auto statement = database_.prepare(sql);
    if (!statement) {
      error_ = statement.error();
      return std::nullopt;
    }
    return std::move(*statement);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  Database& database_;
  std::optional<Error> error_;
};

// Binds the keys and then the columns of the record, and runs the statement.
template <typename Record, typename... Keys>
Status insert(Statement& statement, const Record& record, Keys... keys) {
  RowBinder bind(statement);
  (bind(keys), ...);
  visit_columns(bind, record);
  return statement.run();
}

template <typename Records, typename Write>
Status for_each(const Records& records, Write write) {
  for (const auto& record : records) {
    if (Status status = write(record); !status) {
      return status;
    }
  }
  return ok();
}

}  // namespace tidemark::recording
