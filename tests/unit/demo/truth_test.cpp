// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/truth.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/temp_tree.h"

namespace tidemark::demo {
namespace {

using tracker::Verdict;

constexpr std::string_view kLeak = R"({"schema":1,"complete":true,"scenario":"leak","class":"leak",
  "cause":"collator","patterns":[{"kind":"warmup","from_step":0,"to_step":80,"growth_bytes":1000},
  {"kind":"leak","shape":"linear","from_step":100,"bytes_per_step":524288,"bytes_per_s":10485760}],
  "plateau_step":80,"allocating_line":"trainer_harness/collator.cpp:42","retaining_line":null,
  "steps_done":400,"seconds":20.5,"where":{"kind":"process","role":"trainer"},
  "processes":[{"pid":77,"role":"wrapper"},{"pid":78,"role":"trainer"}],"wrapper_pid":77})";

TEST(DemoTruth, ReadsWhatTheHarnessWroteDown) {
  const auto truth = parse_demo_truth(kLeak);

  ASSERT_TRUE(truth) << truth.error().what;
  EXPECT_TRUE(truth->complete);
  EXPECT_EQ(truth->verdict, Verdict::kLeak);
  EXPECT_EQ(truth->leak_bytes_per_step, 524288.0);
  EXPECT_EQ(truth->plateau_step, 80.0);
  EXPECT_EQ(truth->warmup_growth_bytes, 1000.0);
  EXPECT_FALSE(truth->is_replay);
  EXPECT_EQ(truth->allocating_line, "trainer_harness/collator.cpp:42");
  EXPECT_EQ(truth->where, "process");
  EXPECT_EQ(truth->trainer_pid, 78);
}

TEST(DemoTruth, KnowsARecordedJob) {
  const auto truth = parse_demo_truth(R"({"schema":1,"class":"warmup","replay":"job1"})");

  ASSERT_TRUE(truth) << truth.error().what;
  EXPECT_TRUE(truth->is_replay);
  EXPECT_FALSE(truth->plateau_step);
}

TEST(DemoTruth, TakesNullAndAbsenceForUnknown) {
  const auto truth = parse_demo_truth(
      R"({"schema":1,"class":"warmup","patterns":null,"allocating_line":null,"where":null})");

  ASSERT_TRUE(truth) << truth.error().what;
  EXPECT_FALSE(truth->complete);
  EXPECT_EQ(truth->verdict, Verdict::kWarmup);
  EXPECT_FALSE(truth->leak_bytes_per_step);
  EXPECT_EQ(truth->allocating_line, "");
  EXPECT_EQ(truth->where, "");
  EXPECT_FALSE(truth->trainer_pid);
}

TEST(DemoTruth, TakesFieldsOfAWrongTypeForUnknown) {
  const auto truth = parse_demo_truth(
      R"({"schema":1,"class":"leak","complete":"yes","patterns":[7,{"kind":"leak",
          "bytes_per_step":"many"}],"where":[],"processes":[{"role":"trainer","pid":-4}],
          "allocating_line":5})");

  ASSERT_TRUE(truth) << truth.error().what;
  EXPECT_FALSE(truth->complete);
  EXPECT_FALSE(truth->leak_bytes_per_step);
  EXPECT_FALSE(truth->trainer_pid);
  EXPECT_EQ(truth->allocating_line, "");
}

TEST(DemoTruth, RefusesWhatItCannotKnow) {
  for (const std::string_view text :
       {"", "{", "[]", "{}", R"({"schema":2,"class":"leak"})", R"({"schema":1})",
        R"({"schema":1,"class":"growing"})", R"({"schema":"1","class":"leak"})", "\xff\xfe{}"}) {
    EXPECT_FALSE(parse_demo_truth(text)) << text;
  }
}

TEST(DemoTruth, CutsLongTextsAndRefusesLongFiles) {
  const tests::TempTree tree;
  const std::string head = R"({"schema":1,"class":"leak","allocating_line":")";
  tree.write("long", head + std::string(10'000, 'x') + "\"}");
  tree.write("huge", head + std::string(2'000'000, 'x') + "\"}");

  const auto truth = read_demo_truth(tree.path("long"));

  ASSERT_TRUE(truth);
  EXPECT_EQ(truth->allocating_line.size(), 4096U);
  EXPECT_FALSE(read_demo_truth(tree.path("huge")));
  EXPECT_FALSE(read_demo_truth(tree.path("absent")));
}

TEST(DemoTruth, SurvivesDeepNesting) { EXPECT_FALSE(parse_demo_truth(std::string(50'000, '['))); }

}  // namespace
}  // namespace tidemark::demo
