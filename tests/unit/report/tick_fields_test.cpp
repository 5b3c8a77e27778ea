// SPDX-License-Identifier: Apache-2.0
// Each field of the lists of common/record_fields.h in JSON and CSV, and their order there.
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/io.h"
#include "common/record_fields.h"
#include "recording/open.h"
#include "report/tick_formats.h"
#include "tests/support/filled_records.h"
#include "tests/support/memory_sink.h"
#include "tests/support/record_text.h"
#include "tests/support/temp_tree.h"

namespace tidemark::report {
namespace {

using Json = nlohmann::ordered_json;
using tests::filled_tick;

ProcessLookup lookup_in(const Tick& tick) {
  return [&tick](const ProcessKey&) { return &tick.new_processes[0]; };
}

Json json_of(const Tick& tick) { return Json::parse(tick_json(tick, lookup_in(tick))); }

std::string text_in_json(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

template <typename T>
Json json_value(const T& value) {
  return value;
}
Json json_value(const char& value) { return std::string(1, value); }
template <typename T>
Json json_value(const std::optional<T>& value) {
  return *value;
}

template <typename Record>
void expect_all(const Json& object, const Record& record) {
  visit_output_fields<Record>([&](const auto& field) {
    ASSERT_TRUE(object.contains(std::string(field.name))) << field.name;
    EXPECT_EQ(text_in_json(object[std::string(field.name)]),
              text_in_json(json_value(record.*field.member)))
        << field.name;
  });
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) {
    keys.push_back(item.key());
  }
  return keys;
}

// The names in backticks of a row of docs/output.md, without the first.
std::vector<std::string> documented(const std::string& row) {
  const auto page = read_file(TIDEMARK_SOURCE_DIR "/docs/output.md");
  EXPECT_TRUE(page);
  const std::size_t start = page->find("| `" + row + "` |");
  EXPECT_NE(start, std::string::npos) << row;
  const std::string line = page->substr(start, page->find('\n', start) - start);
  const std::regex name("`([a-z0-9_]+)`");
  std::vector<std::string> names;
  for (std::sregex_iterator it(line.begin() + 2 + static_cast<std::ptrdiff_t>(row.size() + 2),
                               line.end(), name);
       it != std::sregex_iterator(); ++it) {
    names.push_back((*it)[1]);
  }
  return names;
}

TEST(TickFields, AreAllInTheJsonOfATick) {
  const Tick tick = filled_tick();

  const Json json = json_of(tick);

  expect_all(json["processes"][0], tick.processes[0]);
  expect_all(json["system"], *tick.system);
  EXPECT_EQ(json["processes"][0]["footprint_bytes"], *tick.processes[0].footprint_bytes());
}

TEST(TickFields, StandInJsonInTheDocumentedOrder) {
  const Json json = json_of(filled_tick());

  EXPECT_EQ(keys_of(json["processes"][0]), documented("processes[]"));
  EXPECT_EQ(keys_of(json["system"]), documented("system"));
}

TEST(TickFields, OfTheRunAreAllInItsJson) {
  const RunInfo info = tests::FieldFiller().filled<RunInfo>();

  const Json json = Json::parse(run_json(info));

  expect_all(json, info);
  EXPECT_FALSE(json.contains("format"));
  EXPECT_FALSE(json.contains("time_is_steps"));
}

TEST(TickFields, StandInTheHeaderOfCsvInTheirOrder) {
  EXPECT_EQ(csv_header(false),
            "t_s,step,epoch,scope,pid,start_ticks,ppid,role,rank,comm,processes,state,threads,"
            "rss_bytes,rss_anon_bytes,rss_file_bytes,rss_shmem_bytes,swap_bytes,hwm_bytes,"
            "pss_bytes,pss_footprint_bytes,uss_bytes,pss_age_s,footprint_bytes\n");
}

TEST(TickFields, ComeBackFromCsv) {
  const tests::TempTree dir;
  const Tick tick = filled_tick();
  std::string csv = csv_header(false);
  append_tick_csv(csv, tick, lookup_in(tick), false);
  dir.write("run.csv", csv);

  auto reader = recording::open_recording(dir.path("run.csv"));
  ASSERT_TRUE(reader) << reader.error().what;
  tests::MemorySink sink;
  ASSERT_TRUE((*reader)->read(sink));

  ASSERT_EQ(sink.ticks.size(), 1U);
  ASSERT_EQ(sink.ticks[0].processes.size(), 1U);
  EXPECT_EQ(tests::text_of(sink.ticks[0].processes[0]), tests::text_of(tick.processes[0]));
}

}  // namespace
}  // namespace tidemark::report
