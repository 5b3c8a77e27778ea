// SPDX-License-Identifier: Apache-2.0
// Reads the JSON files of `tidemark check`: what is to be checked, and baselines.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "check/baseline.h"
#include "check/config.h"
#include "common/io.h"
#include "common/text.h"
#include "recording/files.h"

namespace tidemark::check {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostConfigBytes = 16U << 20U;
constexpr std::size_t kMostChecks = 1000;
constexpr std::size_t kLongestText = 65536;
constexpr int kSchema = 1;

Error malformed(std::string what) { return Error{Errc::kMalformed, std::move(what)}; }

// "line 3, column 12".
std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t last = before.rfind('\n');
  const std::size_t column =
      last == std::string_view::npos ? before.size() : before.size() - last - 1;
  return fmt::format("line {}, column {}", line, column + 1);
}

// An object of our schema.
Result<Json> parse_document(std::string_view text) {
  Json document;
  try {
    document = Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    return malformed(fmt::format("{}: this is no JSON", place_of(text, error.byte)));
  } catch (const Json::exception&) {  // a number too large, ...
    return malformed("this is no JSON that can be read");
  }
  if (!document.is_object()) {
    return malformed("it is no JSON object");
  }
  const auto schema = document.find("schema");
  if (schema == document.end() || !schema->is_number_integer()) {
    return malformed("\"schema\": 1 is missing");
  }
  if (*schema != kSchema) {
    return malformed("schema: this version of tidemark reads schema 1 only");
  }
  return document;
}

std::string key_text(std::string_view key) { return shorten(escape_text(key), 60); }

Error wrong(const std::string& where, std::string_view what) {
  return malformed(fmt::format("{}: {}", where, what));
}

// --- tidemark.json

// A setting's value as somebody would write it behind its option.
Result<std::string> value_text(const Json& value, const std::string& where) {
  if (value.is_string()) {
    return value.get_ref<const std::string&>().substr(0, kLongestText);
  }
  if (value.is_boolean()) {
    return std::string(value.get<bool>() ? "true" : "false");
  }
  if (value.is_number_integer()) {
    return value.dump();
  }
  return wrong(where, "it takes a text, a whole number, or true or false");
}

Result<CheckValues> settings_of(const Json& object, const std::string& where,
                                const std::set<std::string>& others) {
  CheckValues values;
  for (const auto& [key, value] : object.items()) {
    if (others.contains(key)) {
      continue;
    }
    const std::string at = fmt::format("{}.{}", where, key_text(key));
    if (find_check_setting(key) == nullptr) {
      return wrong(at, "there is no such setting (docs/check.md has them all)");
    }
    TIDEMARK_TRY_ASSIGN(auto text, value_text(value, at));
    values.emplace_back(key, std::move(text));
  }
  return values;
}

Status apply(CheckSpec& spec, const CheckValues& values, const std::string& where) {
  for (const auto& each : values) {
    if (Status applied = apply_settings(spec, {each}); !applied) {
      return wrong(where, applied.error().what);
    }
  }
  return ok();
}

Result<std::vector<std::string>> texts_of(const Json& value, const std::string& where) {
  std::vector<std::string> texts;
  if (!value.is_array() || value.empty()) {
    return wrong(where, "it takes a list of texts");
  }
  for (const Json& item : value) {
    if (!item.is_string()) {
      return wrong(where, "it takes a list of texts");
    }
    texts.push_back(item.get<std::string>());
    if (texts.back().find('\0') != std::string::npos) {
      return wrong(where, "a text holds a zero byte");
    }
  }
  return texts;
}

Result<CheckSpec> check_of(const Json& object, const std::string& where,
                           const CheckValues& defaults, const CheckValues& over) {
  if (!object.is_object()) {
    return wrong(where, "a check is an object");
  }
  CheckSpec spec;
  const auto name = object.find("name");
  if (name == object.end() || !name->is_string() || name->get_ref<const std::string&>().empty()) {
    return wrong(where + ".name", "a check needs a name");
  }
  spec.name = name->get<std::string>().substr(0, kLongestText);
  const std::string named = fmt::format("{} ({})", where, key_text(spec.name));
  const auto command = object.find("command");
  if (command == object.end()) {
    return wrong(named + ".command", "a check needs a command, [\"python\", \"train.py\"]");
  }
  TIDEMARK_TRY_ASSIGN(spec.command, texts_of(*command, named + ".command"));
  TIDEMARK_TRY_ASSIGN(const auto own, settings_of(object, named, {"name", "command"}));
  for (const CheckValues* const values : {&defaults, &own, &over}) {
    TIDEMARK_TRY(apply(spec, *values, named));
  }
  if (const std::string problem = problem_with(spec); !problem.empty()) {
    return wrong(named, problem);
  }
  return spec;
}

Result<std::string> needed_text(const Json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string() ||
      trim(found->get_ref<const std::string&>()).empty()) {
    return wrong(fmt::format("{}.{}", where, key),
                 "a suppression needs a site, a reason and a "
                 "date \"expires\"");
  }
  return found->get<std::string>().substr(0, kLongestText);
}

Result<Suppression> suppression_of(const Json& object, const std::string& where) {
  static const std::set<std::string> kKeys{"site", "reason", "expires", "checks"};
  if (!object.is_object()) {
    return wrong(where, "a suppression is an object");
  }
  for (const auto& [key, value] : object.items()) {
    if (!kKeys.contains(key)) {
      return wrong(fmt::format("{}.{}", where, key_text(key)), "there is no such key");
    }
  }
  Suppression suppression;
  TIDEMARK_TRY_ASSIGN(suppression.site, needed_text(object, "site", where));
  TIDEMARK_TRY_ASSIGN(suppression.reason, needed_text(object, "reason", where));
  TIDEMARK_TRY_ASSIGN(const auto expires, needed_text(object, "expires", where));
  const auto date = parse_date(expires);
  if (!date) {
    return wrong(where + ".expires", date.error().what);
  }
  suppression.expires = *date;
  if (const auto checks = object.find("checks"); checks != object.end()) {
    TIDEMARK_TRY_ASSIGN(suppression.checks, texts_of(*checks, where + ".checks"));
  }
  return suppression;
}

Result<std::vector<CheckSpec>> checks_of(const Json& document, const CheckValues& defaults,
                                         const CheckValues& over) {
  const auto list = document.find("checks");
  if (list == document.end() || !list->is_array() || list->empty() || list->size() > kMostChecks) {
    return wrong("checks", "it takes a list of one or more checks");
  }
  std::vector<CheckSpec> checks;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string where = fmt::format("checks[{}]", i);
    TIDEMARK_TRY_ASSIGN(auto check, check_of((*list)[i], where, defaults, over));
    const bool is_known = std::any_of(checks.begin(), checks.end(), [&](const CheckSpec& each) {
      return each.name == check.name;
    });
    if (is_known) {
      return wrong(where + ".name",
                   fmt::format("'{}' is the name of another check", key_text(check.name)));
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

// --- baselines

std::optional<double> number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) {
    return std::nullopt;
  }
  const double number = found->get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::uint64_t count_at(const Json& object, const char* key) {
  const double number = number_at(object, key).value_or(0.0);
  return number > 0.0 && number < 0x1p63 ? static_cast<std::uint64_t>(number) : 0;
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_string()
             ? ""
             : found->get<std::string>().substr(0, kLongestText);
}

MachineFacts machine_of(const Json& object) {
  MachineFacts machine;
  machine.arch = text_at(object, "arch");
  machine.cpus =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(count_at(object, "cpus"), 1U << 20U));
  machine.memory_bytes = count_at(object, "memory_bytes");
  machine.page_bytes = count_at(object, "page_bytes");
  machine.huge_pages = text_at(object, "huge_pages");
  machine.libc = text_at(object, "libc");
  machine.kernel = text_at(object, "kernel");
  return machine;
}

// As it can be written again: whole bytes.
std::optional<double> size_at(const Json& object, const char* key) {
  const double bytes = object.is_object() ? number_at(object, key).value_or(-1.0) : -1.0;
  return bytes >= 0.0 && bytes < 0x1p63 ? std::optional(bytes) : std::nullopt;
}

Result<StoredRun> stored_run_of(const Json& object, const std::string& where) {
  const auto plateau = size_at(object, "plateau_bytes");
  const auto peak = size_at(object, "peak_bytes");
  if (!plateau || !peak) {
    return wrong(where, "a run needs plateau_bytes and peak_bytes");
  }
  StoredRun run;
  run.figures.plateau_bytes = *plateau;
  run.figures.peak_bytes = *peak;
  run.figures.rate_bytes_per_s = number_at(object, "rate_bytes_per_s");
  run.figures.rate_bytes_per_step = number_at(object, "rate_bytes_per_step");
  run.at = text_at(object, "at");
  run.commit = text_at(object, "commit");
  return run;
}

Result<BaselineEntry> entry_of(const Json& object, const std::string& where) {
  BaselineEntry entry;
  if (!object.is_object() || !object.contains("machine") || !object["machine"].is_object() ||
      !object.contains("runs") || !object["runs"].is_array()) {
    return wrong(where, "it needs a machine and a list of runs");
  }
  entry.machine = machine_of(object["machine"]);
  const Json& runs = object["runs"];
  for (std::size_t i = 0; i < runs.size(); ++i) {
    TIDEMARK_TRY_ASSIGN(auto run, stored_run_of(runs[i], fmt::format("{}.runs[{}]", where, i)));
    entry.runs.push_back(std::move(run));
  }
  return entry;
}

}  // namespace

Result<CheckConfig> parse_check_config(std::string_view text, const CheckValues& over) {
  TIDEMARK_TRY_ASSIGN(const auto document, parse_document(text));
  for (const auto& [key, value] : document.items()) {
    if (key != "schema" && key != "defaults" && key != "checks" && key != "suppressions") {
      return wrong(key_text(key), "there is no such key; checks, defaults and suppressions are");
    }
  }
  CheckValues defaults;
  if (const auto given = document.find("defaults"); given != document.end()) {
    if (!given->is_object()) {
      return wrong("defaults", "it takes an object of settings");
    }
    TIDEMARK_TRY_ASSIGN(defaults, settings_of(*given, "defaults", {}));
    CheckSpec scratch;  // an error in them is not that of the first check
    TIDEMARK_TRY(apply(scratch, defaults, "defaults"));
  }
  CheckConfig config;
  TIDEMARK_TRY_ASSIGN(config.checks, checks_of(document, defaults, over));
  if (const auto list = document.find("suppressions"); list != document.end()) {
    if (!list->is_array()) {
      return wrong("suppressions", "it takes a list");
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
      TIDEMARK_TRY_ASSIGN(auto suppression,
                          suppression_of((*list)[i], fmt::format("suppressions[{}]", i)));
      config.suppressions.push_back(std::move(suppression));
    }
  }
  return config;
}

Result<CheckConfig> read_check_config(const std::string& path, const CheckValues& over) {
  TIDEMARK_TRY_ASSIGN(const auto text, read_file(path, kMostConfigBytes));
  auto config = parse_check_config(text, over);
  return config ? std::move(config) : recording::named(path, config.error());
}

Result<Baseline> parse_baseline(std::string_view text) {
  TIDEMARK_TRY_ASSIGN(const auto document, parse_document(text));
  const auto checks = document.find("checks");
  if (checks == document.end() || !checks->is_object()) {
    return wrong("checks", "a baseline holds its runs by the names of checks");
  }
  Baseline baseline;
  for (const auto& [name, entries] : checks->items()) {
    const std::string where = fmt::format("checks.{}", key_text(name));
    if (!entries.is_array()) {
      return wrong(where, "it takes a list, an entry for each class of machines");
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      TIDEMARK_TRY_ASSIGN(auto entry, entry_of(entries[i], fmt::format("{}[{}]", where, i)));
      baseline.checks[name].push_back(std::move(entry));
    }
  }
  return baseline;
}

}  // namespace tidemark::check
