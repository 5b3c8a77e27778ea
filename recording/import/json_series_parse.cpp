// SPDX-License-Identifier: Apache-2.0
#include "recording/import/json_series_parse.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/text.h"

namespace tidemark::recording {
namespace {

using nlohmann::json;

struct Factor {
  std::string_view name;
  double factor;
};

constexpr Factor kTimeUnits[] = {
    {"seconds", 1.0},  {"s", 1.0},    {"milliseconds", 1e-3}, {"ms", 1e-3},
    {"minutes", 60.0}, {"min", 60.0}, {"hours", 3600.0},      {"h", 3600.0},
};
// As in CSV: powers of 1024.
constexpr Factor kSizeKeys[] = {
    {"y_mb", 1048576.0}, {"y_mib", 1048576.0},   {"y_bytes", 1.0},        {"y_kb", 1024.0},
    {"y_kib", 1024.0},   {"y_gb", 1073741824.0}, {"y_gib", 1073741824.0},
};

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<std::optional<double>> numbers(const json& list, double factor) {
  std::vector<std::optional<double>> values;
  values.reserve(list.size());
  for (const json& item : list) {
    values.push_back(item.is_number() ? std::optional(item.get<double>() * factor) : std::nullopt);
  }
  return values;
}

Error bad_series(const std::string& file, const std::string& id, std::string_view why) {
  return Error{Errc::kMalformed,
               fmt::format("{}: series '{}' {}", file, shorten(escape_text(id), 60), why)};
}

Result<JsonSeries> parse_one(const json& object, std::size_t number, const std::string& file) {
  JsonSeries series;
  series.id = object.is_object() ? text_at(object, "id") : std::string();
  if (series.id.empty()) {
    series.id = fmt::format("series {}", number);
  }
  if (!object.is_object()) {
    return bad_series(file, series.id, "is not an object");
  }
  const std::string unit = text_at(object, "unit");
  double x_factor = 1.0;
  series.is_steps = !unit.empty();  // batches, iterations, requests: whatever is no time
  for (const Factor& candidate : kTimeUnits) {
    if (unit == candidate.name) {
      series.is_steps = false;
      x_factor = candidate.factor;
    }
  }
  const auto x = object.find("x");
  if (x == object.end() || !x->is_array()) {
    return bad_series(file, series.id, "has no list 'x'");
  }
  for (const Factor& candidate : kSizeKeys) {
    const auto y = object.find(candidate.name);
    if (y == object.end() || !y->is_array()) {
      continue;
    }
    if (y->size() != x->size()) {
      return bad_series(
          file, series.id,
          fmt::format("has {} values in 'x' but {} in '{}'", x->size(), y->size(), candidate.name));
    }
    series.x = numbers(*x, x_factor);
    series.y_bytes = numbers(*y, candidate.factor);
    series.metric = text_at(object, "metric");
    return series;
  }
  return bad_series(file, series.id, "has no list 'y_mb' (or y_bytes, y_kb, y_gb)");
}

}  // namespace

Result<std::vector<JsonSeries>> parse_json_series(std::string_view text, const std::string& file) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) {
    return Error{Errc::kMalformed,
                 fmt::format("{} is not valid JSON, or is JSON lines; what `monitor --json` prints "
                             "cannot be read back: record with -o FILE",
                             file)};
  }
  const json* list = &document;
  if (document.is_object() && document.contains("series")) {
    list = &document["series"];
  }
  const json single = list->is_object() ? json::array({*list}) : json();
  if (list->is_object()) {
    list = &single;
  }
  if (!list->is_array() || list->empty()) {
    return Error{Errc::kMalformed, fmt::format("{} is JSON, but holds no series", file)};
  }
  std::vector<JsonSeries> all;
  for (const json& object : *list) {
    TIDEMARK_TRY_ASSIGN(auto series, parse_one(object, all.size() + 1, file));
    all.push_back(std::move(series));
  }
  return all;
}

}  // namespace tidemark::recording
