// SPDX-License-Identifier: Apache-2.0
#include "common/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

namespace tidemark {
namespace {

TEST(JsonWriter, PlacesCommasAndNesting) {
  JsonWriter json;
  json.begin_object().field("a", 1).key("b").begin_array().value(true).begin_object().end_object();
  json.value(-2).end_array().field("c", "x").end_object();
  EXPECT_EQ(json.text(), R"({"a":1,"b":[true,{},-2],"c":"x"})");
}

TEST(JsonWriter, UnknownIsNullNotZero) {
  JsonWriter json;
  json.begin_array().value(std::optional<int>{}).value(std::optional<int>{0}).value(NAN);
  json.end_array();
  EXPECT_EQ(json.text(), "[null,0,null]");
}

TEST(JsonWriter, KeepsLargeNumbersExact) {
  JsonWriter json;
  json.begin_array().value(UINT64_MAX).value(INT64_MIN).value(0.1).end_array();
  EXPECT_EQ(json.text(), "[18446744073709551615,-9223372036854775808,0.1]");
}

TEST(JsonWriter, EscapesKeysAndValues) {
  JsonWriter json;
  json.begin_object().field("k\"", "v\n").end_object();
  EXPECT_EQ(json.text(), "{\"k\\\"\":\"v\\n\"}");
}

}  // namespace
}  // namespace tidemark
