// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/record_fields.h"
#include "common/result.h"
#include "common/text.h"
#include "recording/sqlite.h"

// How records become rows of a run file, and rows records: field by field, as the lists of
// common/record_fields.h say.
namespace tidemark::recording {

// Binds values to consecutive parameters of a statement, from the first on.
class RowBinder {
 public:
  explicit RowBinder(Statement& statement) : statement_(statement) {}

  // `List` is whose list of fields it is: the record's own, or another of the same record.
  template <typename List, typename Record>
  void bind(const Record& record) {
    visit_fields<List>([&](const auto& field) { (*this)(record.*field.member); });
  }

  template <std::integral T>
  void operator()(T value) {
    constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
    // SQLite's integers are signed: what does not fit is kept as the largest that does.
    const bool fits = std::cmp_less_equal(value, kLargest);
    statement_.bind(++index_, fits ? static_cast<std::int64_t>(value) : kLargest);
  }
  void operator()(bool value) { statement_.bind(++index_, std::int64_t{value}); }
  void operator()(double value) { statement_.bind(++index_, value); }
  void operator()(char value) { statement_.bind_bytes(++index_, std::string_view(&value, 1)); }
  void operator()(std::string_view value) { statement_.bind_bytes(++index_, value); }
  void operator()(const std::string& value) { statement_.bind_bytes(++index_, value); }
  void operator()(const LossName& name) { (*this)(name.text()); }
  // "3 224 224".
  void operator()(const std::vector<std::int64_t>& numbers) {
    (*this)(fmt::format("{}", fmt::join(numbers, " ")));
  }
  void operator()(std::nullopt_t) { statement_.bind_null(++index_); }
  void operator()(const ProcessKey& key) { (*this)(key.pid), (*this)(key.start_ticks); }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void operator()(Enum value) { (*this)(name_of(value)); }
  template <typename T>
  void operator()(const std::optional<T>& value) {
    if (value) {
      (*this)(*value);
    } else {
      statement_.bind_null(++index_);
    }
  }

 private:
  Statement& statement_;
  int index_ = 0;
};

// Loads consecutive columns of the current row, of a file of schema `version`. The file is
// untrusted: a value of the wrong type or out of range makes is_valid() false, an unknown name is
// kept in unknown_name().
class RowLoader {
 public:
  RowLoader(const Statement& statement, int first_column, std::int32_t version)
      : statement_(statement), column_(first_column), version_(version) {}

  // Fields that the file is too old for stay as they are. `List` as in RowBinder.
  template <typename List, typename Record>
  void load(Record& record) {
    visit_fields<List>([&](const auto& field) {
      if (field.traits.since_version <= version_) {
        (*this)(record.*field.member);
      }
    });
  }

  template <std::integral T>
  void operator()(T& value) {
    const std::int64_t stored = statement_.integer(column_);
    check(statement_.is_integer(column_++) && std::in_range<T>(stored));
    value = static_cast<T>(stored);
  }
  void operator()(bool& value) {
    check(statement_.is_integer(column_));
    value = statement_.integer(column_++) != 0;
  }
  void operator()(double& value) {
    value = statement_.real(column_);
    check(statement_.is_number(column_++) && std::isfinite(value));
  }
  void operator()(char& value) {
    const std::string_view text = statement_.bytes(column_++);
    check(text.size() == 1);
    value = text.empty() ? '?' : text.front();
  }
  void operator()(std::string& value) {
    check(!statement_.is_null(column_));
    value = statement_.bytes(column_++);
  }
  void operator()(LossName& name) {
    check(!statement_.is_null(column_));
    name = LossName(statement_.bytes(column_++));
  }
  void operator()(std::vector<std::int64_t>& numbers) {
    check(!statement_.is_null(column_));
    numbers.clear();
    for (std::string_view rest = statement_.bytes(column_++); !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      const auto number = parse_number<std::int64_t>(word);
      check(number.has_value() && numbers.size() < kMostNumbers);
      if (!is_valid_) {
        return;
      }
      numbers.push_back(*number);
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    }
  }
  void operator()(ProcessKey& key) { (*this)(key.pid), (*this)(key.start_ticks); }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void operator()(Enum& value) {
    if (const auto known = from_name(statement_.bytes(column_), value)) {
      value = *known;
    } else {
      unknown_name_ = statement_.bytes(column_);
    }
    ++column_;
  }
  template <typename T>
  void operator()(std::optional<T>& value) {
    if (statement_.is_null(column_)) {
      value.reset();
      ++column_;
    } else {
      (*this)(value.emplace());
    }
  }

  bool is_valid() const { return is_valid_; }
  const std::optional<std::string>& unknown_name() const { return unknown_name_; }

 private:
  static constexpr std::size_t kMostNumbers = 64;  // in one column

  void check(bool condition) { is_valid_ = is_valid_ && condition; }

  const Statement& statement_;
  int column_;
  std::int32_t version_;
  bool is_valid_ = true;
  std::optional<std::string> unknown_name_;
};

// Binds the keys and then the fields of the record, and runs the statement. Columns beyond those
// are NULL.
template <typename List, typename Record, typename... Keys>
Status insert_as(Statement& statement, const Record& record, Keys... keys) {
  RowBinder binder(statement);
  (binder(keys), ...);
  binder.bind<List>(record);
  return statement.run();
}
template <typename Record, typename... Keys>
Status insert(Statement& statement, const Record& record, Keys... keys) {
  return insert_as<Record>(statement, record, keys...);
}

}  // namespace tidemark::recording
