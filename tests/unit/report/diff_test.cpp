// SPDX-License-Identifier: Apache-2.0
#include "report/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/judged_run.h"
#include "tests/support/owner_run.h"
#include "tracker/owners/owner_ranking.h"

namespace tidemark::report {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using tests::add_role;
using tests::add_spikes;
using tests::HandMadeRun;
using tests::leaking_run;
using tests::settled_run;
using tracker::Axis;
using tracker::Metric;
using tracker::PatternKind;
using tracker::RunDiff;
using tracker::Verdict;

RunDiff compare(const HandMadeRun& a, const HandMadeRun& b) {
  return compare_runs(a.judged(), b.judged(), Metric::kFootprint).value_or(RunDiff{});
}

std::string text_of(const HandMadeRun& a, const HandMadeRun& b) {
  return diff_text(compare(a, b), {"a", {}}, {"b", {}});
}

RunDiff leak_that_was_fixed() {
  HandMadeRun a = leaking_run(1000, 2);
  add_spikes(a, 10, 300, 40);
  add_role(a, Role::kTrainer, 1, 700);
  add_role(a, Role::kCompileWorker, 20, 300);
  HandMadeRun b = settled_run(900);
  add_role(b, Role::kTrainer, 1, 700);
  add_role(b, Role::kCompileWorker, 4, 200);
  return compare(a, b);
}

TEST(DiffView, PutsTheAnswerFirstAndBothRunsInColumns) {
  EXPECT_EQ(diff_text(leak_that_was_fixed(), {"before.tidemark", {}},
                      {"after\x1b.tidemark", {{"pss_denied", 3}}}),
            R"(B is better: A leaks 2.00 MiB/step, B does not leak.

A  before.tidemark
B  after\x1b.tidemark
footprint of the whole tree, aligned on steps 0 to 400

                                  A                B           B - A
  verdict                      leak           stable                  better
  settled floor         not settled          900 MiB
  growth              2.00 MiB/step  < 10.2 KiB/step  -2.00 MiB/step  better
    95 % interval    +-205 KiB/step
  peak                     1000 MiB          900 MiB        -100 MiB  better
  spike height              300 MiB             none                  better
  trainer                x1 700 MiB       x1 700 MiB            +0 B  within noise
  compile_worker        x20 300 MiB       x4 200 MiB        -100 MiB  better
  floor at step 100        1000 MiB          900 MiB        -100 MiB
  floor at step 200        1000 MiB          900 MiB        -100 MiB
  floor at step 300        1000 MiB          900 MiB        -100 MiB
  floor at step 400        1000 MiB          900 MiB        -100 MiB
not seen in B: pss_denied 3
)");
}

TEST(DiffView, WritesTheDocumentedJson) {
  EXPECT_EQ(diff_json(leak_that_was_fixed(), {"before.tidemark", {}},
                      {"after.tidemark", {{"pss_denied", 3}}}),
            R"({"schema":1,"overall":"better","verdict_change":"better",)"
            R"("metric":"footprint","aligned":{"on":"steps","from":0,"to":400,)"
            R"("counted_from_start":false},"a":{"file":"before.tidemark","verdict":"leak",)"
            R"("undetermined":false,"confidence":0.9,"settled":false,"spikes":10,)"
            R"("samples":401,"losses":{}},"b":{"file":"after.tidemark","verdict":"stable",)"
            R"("undetermined":false,"confidence":0.9,"settled":true,"spikes":0,)"
            R"("samples":401,"losses":{"pss_denied":3}},"rows":[{"what":"settled_floor",)"
            R"("unit":"bytes","a":{"value":null},"b":{"value":943718400},"difference":null,)"
            R"("noise":20971520,"change":"unclear"},{"what":"growth_rate",)"
            R"("unit":"bytes_per_step","a":{"value":2097152,"low":1887436.8,)"
            R"("high":2306867.2},"b":{"value":0,"low":-10485.76,"high":10485.76},)"
            R"("difference":-2097152,"noise":209977.18036448062,"change":"better"},)"
            R"({"what":"peak","unit":"bytes","a":{"value":1048576000},)"
            R"("b":{"value":943718400},"difference":-104857600,"noise":20971520,)"
            R"("change":"better"},{"what":"spike_height","unit":"bytes",)"
            R"("a":{"value":314572800},"b":{"value":null},"difference":null,"noise":null,)"
            R"("change":"better"},{"what":"role","unit":"bytes","role":"trainer",)"
            R"("a":{"value":734003200,"processes":1},"b":{"value":734003200,"processes":1},)"
            R"("difference":0,"noise":14680064,"change":"same"},{"what":"role",)"
            R"("unit":"bytes","role":"compile_worker","a":{"value":314572800,)"
            R"("processes":20},"b":{"value":209715200,"processes":4},)"
            R"("difference":-104857600,"noise":10485760,"change":"better"}],)"
            R"("floors":[{"at":100,"a_bytes":1048576000,"b_bytes":943718400},{"at":200,)"
            R"("a_bytes":1048576000,"b_bytes":943718400},{"at":300,"a_bytes":1048576000,)"
            R"("b_bytes":943718400},{"at":400,"a_bytes":1048576000,"b_bytes":943718400}]})"
            "\n");
}

TEST(DiffView, SaysWhichOfTwoLeaksIsFaster) {
  EXPECT_THAT(text_of(leaking_run(100, 2), leaking_run(100, 1)),
              StartsWith("Both leak, B more slowly: A 2.00 MiB/step, B 1.00 MiB/step.\n"));
  EXPECT_THAT(text_of(leaking_run(100, 1), leaking_run(100, 2)), StartsWith("Both leak, B faster"));
  EXPECT_THAT(text_of(leaking_run(100, 2), leaking_run(100, 2)),
              StartsWith("Both leak, at the same rate within noise"));
}

TEST(DiffView, NamesWhatChangedWhenNothingLeaks) {
  EXPECT_THAT(text_of(settled_run(1000), settled_run(1000)),
              StartsWith("No difference beyond noise.\n"));
  EXPECT_THAT(text_of(settled_run(1000), settled_run(1200)),
              StartsWith("B is worse: settled floor +200 MiB, peak +200 MiB.\n"));
  HandMadeRun spiky = settled_run(1000);
  add_spikes(spiky, 10, 300, 40);
  EXPECT_THAT(text_of(spiky, settled_run(1000)),
              StartsWith("B is better: spike height none instead of 300 MiB"));
}

TEST(DiffView, SaysANewLeakWithItsRate) {
  EXPECT_THAT(text_of(settled_run(1000), leaking_run(1000, 2)),
              StartsWith("B is worse: it leaks 2.00 MiB/step, A does not leak.\n"));
}

TEST(DiffView, GivesRatesPerMinuteWhenStepsAreUnknown) {
  HandMadeRun a = leaking_run(1000, 2);
  a.tree().axis = Axis::kTime;

  const std::string text = text_of(a, settled_run(1000));

  EXPECT_THAT(text, HasSubstr("aligned on time 00:00:00 to 00:03:20"));
  EXPECT_THAT(text, HasSubstr("A leaks 240 MiB/min"));
  EXPECT_THAT(text, HasSubstr("< 1.20 MiB/min"));
}

TEST(DiffView, SaysThatItCannotTellYet) {
  HandMadeRun growing = leaking_run(1000, 2);
  growing.tree().undetermined = true;
  growing.tree().verdict = Verdict::kGrowing;
  growing.tree().patterns[0].kind = PatternKind::kGrowth;
  growing.verdict.verdict = Verdict::kGrowing;

  EXPECT_THAT(text_of(settled_run(1000), growing),
              StartsWith("Cannot tell whether B leaks less: B is too short to judge.\n"));
}

// One that was fixed, one that has come, and one that has got slower.
std::vector<tracker::OwnerDiff> owner_diffs() {
  const auto ranked = [](const tests::OwnerRun& run) {
    auto builder = std::make_unique<tracker::OwnerTrackBuilder>();
    for (const Tick& tick : run.ticks(3)) {
      EXPECT_TRUE(builder->add(tick));
    }
    return builder;
  };
  tests::OwnerRun a = tests::leaking_collator();
  a.add(tests::owner_record("__main__.log", "list"),
        tests::entries_at([](std::size_t look) { return 10 * look; }));
  tests::OwnerRun b;
  b.add_process(tests::trainer_record());
  b.add(tests::owner_record("__main__.collator.cache"),
        tests::entries_at([](std::size_t) { return 64U; }));
  b.add(tests::owner_record("__main__.log", "list"),
        tests::entries_at([](std::size_t look) { return 5 * look; }));
  b.add(tests::owner_record("__main__.new\x1b", "list"),
        tests::entries_at([](std::size_t look) { return 2 * look; }));
  const auto runs = std::pair(ranked(a), ranked(b));
  return tracker::compare_owners(tracker::rank_owners(runs.first->owners(), {}),
                                 tracker::rank_owners(runs.second->owners(), {}));
}

TEST(DiffView, ComparesOwnersWhereBothHaveLooks) {
  const std::string text = diff_text(leak_that_was_fixed(), {"a", {}}, {"b", {}}, owner_diffs());

  EXPECT_THAT(text, HasSubstr(R"(
  owners that grow                      A              B
  __main__.collator.cache  +1.00 MiB/step       64.0 MiB  better
  __main__.log              +512 KiB/step  +256 KiB/step  better
  __main__.new\x1b                   none  +102 KiB/step  worse
)"));
  const std::string json = diff_json(leak_that_was_fixed(), {"a", {}}, {"b", {}}, owner_diffs());
  EXPECT_THAT(json, HasSubstr(R"("owners":[{"path":"__main__.collator.cache","type":"dict",)"
                              R"("role":"trainer","a":{"verdict":"growing",)"));
  EXPECT_THAT(json, HasSubstr(R"("a":null,"b":{"verdict":"growing",)"));
}

TEST(DiffView, HasNoOwnersWithoutLooks) {
  EXPECT_THAT(diff_text(leak_that_was_fixed(), {"a", {}}, {"b", {}}),
              testing::Not(HasSubstr("owners")));
}

}  // namespace
}  // namespace tidemark::report
