// SPDX-License-Identifier: Apache-2.0
#include "report/rule_out_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <nlohmann/json.hpp>

#include "common/units.h"

namespace tidemark::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

InterventionRecord record(InterventionKind kind, InterventionOutcome outcome,
                          std::uint64_t effect_mib) {
  InterventionRecord record;
  record.key = {4711, 5};
  record.kind = kind;
  record.outcome = outcome;
  record.t_s = 4.0;
  record.before_bytes = 2000 * kMiB;
  record.after_bytes = (2000 - effect_mib) * kMiB;
  record.effect_bytes = static_cast<std::int64_t>(effect_mib * kMiB);
  record.noise_bytes = 3 * kMiB;
  record.took_s = 0.031;
  return record;
}

RuleOutReport sample_report() {
  RuleOutReport report;
  RuleOutReport::Process& process = report.processes.emplace_back();
  process.key = {4711, 5};
  process.program = "train\x1b.py";
  process.footprint_bytes = 600 * kMiB;
  InterventionRecord gc = record(InterventionKind::kGc, InterventionOutcome::kRuledOut, 0);
  gc.objects = 12;
  InterventionRecord cuda = record(InterventionKind::kCuda, InterventionOutcome::kRuledOut, 0);
  cuda.before_bytes = cuda.after_bytes = cuda.noise_bytes = std::nullopt;
  cuda.effect_bytes = std::nullopt;
  cuda.problem = "torch uses no GPU";
  process.interventions = {
      record(InterventionKind::kTrim, InterventionOutcome::kConfirmed, 1400), gc, cuda,
      record(InterventionKind::kMappedFiles, InterventionOutcome::kRuledOut, 100)};
  return report;
}

TEST(RuleOutText, HasARowForEachSuspectAndASentenceForWhatIsConfirmed) {
  EXPECT_EQ(rule_out_text(sample_report(), 100), R"(pid 4711 (train\x1b.py): footprint 600 MiB

  suspect                                                effect  answer      took
  freed memory that glibc keeps            1.37 GiB +- 3.00 MiB  confirmed  31 ms
  garbage in reference cycles                   0 B +- 3.00 MiB  ruled out  31 ms
  torch's caches of GPU and pinned memory                     -  ruled out      -
  files that it has mapped                  100 MiB of 1.95 GiB  ruled out      -

note: torch's caches of GPU and pinned memory: torch uses no GPU
1.37 GiB was freed memory that glibc keeps: set MALLOC_ARENA_MAX=2 where many threads allocate,
MALLOC_TRIM_THRESHOLD_=131072 and MALLOC_MMAP_THRESHOLD_=131072 where blocks are large, or call
malloc_trim(0) now and then.
600 MiB is left, and in use; tidemark owners --pid 4711 names the objects that hold it.
)");
}

TEST(RuleOutText, SaysWhatIsNotDecidedAndThenNotThatTheRestIsInUse) {
  RuleOutReport report = sample_report();
  report.processes[0].interventions[1].outcome = InterventionOutcome::kCannotTell;

  EXPECT_THAT(
      conclusions(report.processes[0]),
      ElementsAre(HasSubstr("1.37 GiB was freed"), "Not decided: garbage in reference cycles.",
                  "600 MiB is left; tidemark owners --pid 4711 names the objects that "
                  "hold it."));
  EXPECT_FALSE(is_decided(report));
  EXPECT_TRUE(is_decided(sample_report()));
}

// The largest first, and what is no part of the footprint last.
TEST(RuleOutText, OrdersWhatIsConfirmed) {
  RuleOutReport::Process process;
  process.interventions = {
      record(InterventionKind::kMappedFiles, InterventionOutcome::kConfirmed, 1900),
      record(InterventionKind::kTrim, InterventionOutcome::kConfirmed, 100),
      record(InterventionKind::kGc, InterventionOutcome::kConfirmed, 300)};
  process.interventions[2].objects = 1;

  EXPECT_THAT(conclusions(process),
              ElementsAre(HasSubstr("300 MiB was garbage in reference cycles (1 object): call "
                                    "gc.collect() every few hundred steps"),
                          HasSubstr("100 MiB was freed memory that glibc keeps"),
                          HasSubstr("1.86 GiB of the 1.95 GiB that rss shows are files")));
}

// It has grown meanwhile: nothing came back.
TEST(RuleOutText, ShowsNoEffectBelowNothing) {
  RuleOutReport report = sample_report();
  report.processes[0].interventions[1].effect_bytes = -static_cast<std::int64_t>(50 * kMiB);

  EXPECT_THAT(rule_out_text(report, 100), HasSubstr("0 B +- 3.00 MiB"));
  EXPECT_THAT(rule_out_json(report), HasSubstr("\"effect_bytes\":-52428800"));
}

TEST(RuleOutText, SaysHowLongItWaited) {
  RuleOutReport report = sample_report();
  report.processes[0].interventions[1].waited_s = 3.5;
  report.processes[0].interventions[1].took_s = 0.0002;

  const std::string text = rule_out_text(report, 100);

  EXPECT_THAT(text, HasSubstr("note: garbage in reference cycles: its interpreter was waited for"));
  EXPECT_THAT(text, HasSubstr("< 1 ms"));
}

TEST(RuleOutText, SaysNothingOfWhatIsLeftWhereNothingWasDone) {
  RuleOutReport::Process process;
  process.footprint_bytes = 100 * kMiB;
  process.interventions = {
      record(InterventionKind::kMappedFiles, InterventionOutcome::kRuledOut, 0)};

  EXPECT_TRUE(conclusions(process).empty());
}

TEST(RuleOutJson, HasAllFigures) {
  const auto json = nlohmann::json::parse(rule_out_json(sample_report()));

  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_EQ(json.at("dry_run"), false);
  const auto& process = json.at("processes").at(0);
  EXPECT_EQ(process.at("pid"), 4711);
  EXPECT_EQ(process.at("footprint_bytes"), 600 * kMiB);
  const auto& trim = process.at("interventions").at(0);
  EXPECT_EQ(trim.at("kind"), "trim");
  EXPECT_EQ(trim.at("outcome"), "confirmed");
  EXPECT_EQ(trim.at("effect_bytes"), 1400 * kMiB);
  EXPECT_EQ(trim.at("noise_bytes"), 3 * kMiB);
  EXPECT_EQ(trim.at("problem"), nullptr);
  EXPECT_EQ(process.at("interventions").at(1).at("objects"), 12);
  EXPECT_EQ(process.at("interventions").at(2).at("effect_bytes"), nullptr);
  EXPECT_EQ(process.at("conclusions").size(), 2U);
}

TEST(RuleOutPlanText, SaysWhatWouldBeDoneAndWhatCannotBe) {
  RuleOutPlan plan;
  RuleOutPlan::Process& process = plan.processes.emplace_back();
  process.key = {4711, 5};
  process.steps = {{InterventionKind::kTrim, "malloc_trim(0) of libc.so.6", ""},
                   {InterventionKind::kGc, "gc.collect()", "it runs no Python"}};

  EXPECT_EQ(plan_text(plan, 80), R"(pid 4711: this would be done, one after the other

  suspect                        what would be done           possible
  freed memory that glibc keeps  malloc_trim(0) of libc.so.6  yes
  garbage in reference cycles    gc.collect()                 no

note: garbage in reference cycles: it runs no Python
)");
  const auto json = nlohmann::json::parse(plan_json(plan));
  EXPECT_EQ(json.at("dry_run"), true);
  EXPECT_EQ(json.at("processes").at(0).at("steps").at(1).at("possible"), false);
}

}  // namespace
}  // namespace tidemark::report
