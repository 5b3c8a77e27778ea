// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/truth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/io.h"

namespace tidemark::demo {
namespace {

using nlohmann::json;
using tracker::Verdict;

constexpr std::size_t kMostBytes = 1U << 20U;
constexpr std::size_t kLongestText = 4096;
constexpr int kSchema = 1;

const json* at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::optional<double> number_at(const json& object, const char* key) {
  const json* const value = at(object, key);
  if (value == nullptr || !value->is_number()) {
    return std::nullopt;
  }
  const double number = value->get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::string text_at(const json& object, const char* key) {
  const json* const value = at(object, key);
  if (value == nullptr || !value->is_string()) {
    return "";
  }
  return value->get_ref<const std::string&>().substr(0, kLongestText);
}

std::optional<pid_t> pid_at(const json& object, const char* key) {
  const std::optional<double> number = number_at(object, key);
  const bool fits =
      number && *number >= 1.0 && *number <= static_cast<double>(std::numeric_limits<pid_t>::max());
  return fits ? std::optional(static_cast<pid_t>(*number)) : std::nullopt;
}

std::optional<Verdict> verdict_of(std::string_view name) {
  static constexpr std::array kClasses{Verdict::kStable, Verdict::kWarmup, Verdict::kSpikes,
                                       Verdict::kLeak};
  const auto found = std::find_if(kClasses.begin(), kClasses.end(), [&](Verdict verdict) {
    return tracker::verdict_name(verdict) == name;
  });
  return found == kClasses.end() ? std::nullopt : std::optional(*found);
}

// The first object of the list at `key` whose `field` is `text`.
const json* find_in(const json& object, const char* key, const char* field, std::string_view text) {
  const json* const list = at(object, key);
  if (list == nullptr || !list->is_array()) {
    return nullptr;
  }
  const auto found = std::find_if(list->begin(), list->end(), [&](const json& item) {
    return item.is_object() && text_at(item, field) == text;
  });
  return found == list->end() ? nullptr : &*found;
}

Error malformed(std::string_view why) {
  return Error{Errc::kMalformed, fmt::format("the truth file {}", why)};
}

}  // namespace

Result<DemoTruth> parse_demo_truth(std::string_view text) {
  const json truth = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (truth.is_discarded() || !truth.is_object()) {
    return malformed("is not a JSON object");
  }
  if (number_at(truth, "schema") != kSchema) {
    return malformed("has another schema than 1");
  }
  const auto verdict = verdict_of(text_at(truth, "class"));
  if (!verdict) {
    return malformed("has no class that we know");
  }
  DemoTruth result;
  result.verdict = *verdict;
  const json* const complete = at(truth, "complete");
  result.complete = complete != nullptr && complete->is_boolean() && complete->get<bool>();
  if (const json* const leak = find_in(truth, "patterns", "kind", "leak")) {
    result.leak_bytes_per_step = number_at(*leak, "bytes_per_step");
  }
  if (const json* const warmup = find_in(truth, "patterns", "kind", "warmup")) {
    result.plateau_step = number_at(*warmup, "to_step");
    result.warmup_growth_bytes = number_at(*warmup, "growth_bytes");
  }
  result.is_replay = !text_at(truth, "replay").empty();
  result.allocating_line = text_at(truth, "allocating_line");
  if (const json* const where = at(truth, "where"); where != nullptr && where->is_object()) {
    result.where = text_at(*where, "kind");
  }
  if (const json* const trainer = find_in(truth, "processes", "role", "trainer")) {
    result.trainer_pid = pid_at(*trainer, "pid");
  }
  return result;
}

Result<DemoTruth> read_demo_truth(const std::string& path) {
  TIDEMARK_TRY_ASSIGN(const auto text, read_file(path, kMostBytes));
  return parse_demo_truth(text);
}

}  // namespace tidemark::demo
