// SPDX-License-Identifier: Apache-2.0
// docs/output.md names every event, marker and loss that the output may have.
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/io.h"
#include "common/records.h"

namespace tidemark::report {
namespace {

using testing::Contains;
using testing::HasSubstr;

const std::string kSources = TIDEMARK_SOURCE_DIR;

std::string content_of(const std::string& path) {
  auto text = read_file(path);
  EXPECT_TRUE(text) << path;
  return text ? *text : "";
}

// From `begin` to the next `end`, without both.
std::string between(const std::string& text, std::string_view begin, std::string_view end) {
  const std::size_t from = text.find(begin);
  EXPECT_NE(from, std::string::npos) << begin;
  if (from == std::string::npos) {
    return "";
  }
  const std::size_t start = from + begin.size();
  return text.substr(start, text.find(end, start) - start);
}

std::set<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern); it != std::sregex_iterator();
       ++it) {
    found.insert((*it)[1]);
  }
  return found;
}

// The strings of an array in common/records.cpp.
std::set<std::string> names_of(const std::string& array) {
  return matches(between(content_of(kSources + "/common/records.cpp"), array + "{", "}"),
                 std::regex("\"([a-z_]+)\""));
}

void expect_all(const std::set<std::string>& names, const std::string& text) {
  for (const std::string& name : names) {
    EXPECT_THAT(text, HasSubstr("`" + name + "`"));
  }
}

class OutputPage : public testing::Test {
 protected:
  const std::string page_ = content_of(kSources + "/docs/output.md");
};

TEST_F(OutputPage, NamesEveryEvent) {
  const auto names = names_of("kEventNames");

  ASSERT_THAT(names, Contains("oom_kill"));
  expect_all(names, between(page_, "`\"kind\":\"event\"`", "\n\n"));
}

TEST_F(OutputPage, NamesEveryMarker) {
  const auto names = names_of("kMarkerNames");

  ASSERT_THAT(names, Contains("phase_begin"));
  expect_all(names, between(page_, "| `markers[]` |", "\n"));
}

TEST_F(OutputPage, NamesEveryLoss) {
  const std::set<std::string> names(loss_names().begin(), loss_names().end());

  ASSERT_THAT(names, Contains("bad_lines"));
  expect_all(names, between(page_, "\n## Losses\n", "\n## "));
}

}  // namespace
}  // namespace tidemark::report
