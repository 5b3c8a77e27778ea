// SPDX-License-Identifier: Apache-2.0
#include "common/json_writer.h"

#include <cmath>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

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

TEST(JsonWriter, WritesListsAndWhatMayBeUnknown) {
  const std::vector<int> numbers{1, 2};
  const std::optional<int> none;
  JsonWriter json;
  json.begin_object()
      .array("values", numbers)
      .array("doubled", numbers, [&](int number) { json.value(2 * number); })
      .text_field("text", "")
      .object("object", [&] { json.field("a", 1); })
      .object_or_null("known", &numbers, [&](const auto& all) { json.field("n", all.size()); })
      .object_or_null("unknown", none, [&](int) { json.field("n", 0); })
      .end_object();

  EXPECT_EQ(json.text(), R"({"values":[1,2],"doubled":[2,4],"text":null,"object":{"a":1},)"
                         R"("known":{"n":2},"unknown":null})");
}

}  // namespace
}  // namespace tidemark
