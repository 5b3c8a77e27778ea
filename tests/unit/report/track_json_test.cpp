// SPDX-License-Identifier: Apache-2.0
#include "report/track_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/unit/report/sample_verdict.h"

namespace tidemark::report {
namespace {

using nlohmann::json;

TEST(TrackJson, LooksAsInTheGoldenFiles) {
  const auto pretty = [](const tracker::JudgedRun& result) {
    return nlohmann::ordered_json::parse(track_json(result)).dump(1) + '\n';
  };

  EXPECT_EQ(tests::difference_from_golden("track/leak.json", pretty(tests::leaking_run())), "");
  EXPECT_EQ(tests::difference_from_golden("track/growing.json", pretty(tests::growing_run())), "");
}

TEST(TrackJson, HasEveryFieldOfTheSchema) {
  const json answer = json::parse(track_json(tests::leaking_run()));

  for (const char* field :
       {"schema", "verdict", "confidence", "metric", "where", "floor_bytes", "ceiling_bytes",
        "mean_bytes", "patterns", "forecast", "smallest_detectable_bytes_per_s", "needs", "series",
        "evidence", "advice", "overhead", "losses"}) {
    EXPECT_TRUE(answer.contains(field)) << field;
  }
  EXPECT_EQ(answer["where"]["pid"], 1240);
  EXPECT_EQ(answer["where"]["role"], "trainer");
  EXPECT_EQ(answer["patterns"][1]["shape"], "linear");
  EXPECT_EQ(answer["patterns"][1]["since_step"], 400);
  EXPECT_EQ(answer["overhead"][0]["footprint_bytes"], 300 << 20);
  EXPECT_EQ(answer["losses"]["pss_denied"], 3);
}

TEST(TrackJson, WritesUnknownAsNull) {
  const json answer = json::parse(track_json(tests::growing_run()));

  EXPECT_TRUE(answer["patterns"][0]["from_step"].is_null());
  EXPECT_TRUE(answer["forecast"]["in_s_low"].is_null());
  EXPECT_TRUE(answer["smallest_detectable_bytes_per_s"].is_null());
  EXPECT_EQ(answer["needs"], "about 25 min more");
}

TEST(TrackJson, HasNoVerdictWhereNothingWasSeen) {
  const json answer = json::parse(track_json(tracker::JudgedRun{}));

  EXPECT_TRUE(answer["verdict"].is_null());
  EXPECT_EQ(answer["undetermined"], true);
}

}  // namespace
}  // namespace tidemark::report
