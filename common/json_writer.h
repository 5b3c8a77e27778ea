// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidemark {

// Writes one JSON document into a string: for output only, without a tree in memory. Commas are
// placed by the writer; strings may hold any bytes. Doubles that are not finite become null.
class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(double number);
  JsonWriter& value(std::nullptr_t);
  template <std::integral T>
  requires(!std::same_as<T, bool>) JsonWriter& value(T number) {
    if constexpr (std::signed_integral<T>) {
      return signed_value(number);
    } else {
      return unsigned_value(number);
    }
  }
  // A whole document of another writer, as a value.
  JsonWriter& document(std::string_view json);
  // Unknown is null, never 0.
  template <typename T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : value(nullptr);
  }

  template <typename T>
  JsonWriter& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  // Unknown text is null.
  JsonWriter& text_field(std::string_view name, std::string_view content) {
    return content.empty() ? field(name, nullptr) : field(name, content);
  }
  // "name":[...] of values, or of what `add` writes for each element.
  template <typename Range>
  JsonWriter& array(std::string_view name, const Range& elements) {
    return array(name, elements, [this](const auto& element) { this->value(element); });
  }
  template <typename Range, typename Add>
  JsonWriter& array(std::string_view name, const Range& elements, Add add) {
    key(name).begin_array();
    for (const auto& element : elements) {
      add(element);
    }
    return end_array();
  }
  // "name":{...} of what `add` writes.
  template <typename Add>
  JsonWriter& object(std::string_view name, Add add) {
    key(name).begin_object();
    add();
    return end_object();
  }
  // The same for what may be unknown: an optional or a pointer.
  template <typename Maybe, typename Add>
  JsonWriter& object_or_null(std::string_view name, const Maybe& maybe, Add add) {
    return maybe ? object(name, [&] { add(*maybe); }) : field(name, nullptr);
  }

  const std::string& text() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  JsonWriter& signed_value(std::int64_t number);
  JsonWriter& unsigned_value(std::uint64_t number);
  void separate();

  std::string out_;
  bool needs_comma_ = false;
};

}  // namespace tidemark
