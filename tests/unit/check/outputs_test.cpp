// SPDX-License-Identifier: Apache-2.0
#include "check/outputs.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "check/words.h"
#include "tests/unit/check/sample_check.h"

namespace tidemark::check {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using tests::failing_check;
using tests::passing_check;
using tests::undetermined_check;

constexpr const char* kHostile =
    "a\"]]><script>alert(1)</script>&`|@team [x](http://e) \n::error::\x1b[2J\xff";

std::vector<CheckResult> list(CheckResult result) {
  std::vector<CheckResult> results;
  results.push_back(std::move(result));
  return results;
}

CheckResult with_sites(const std::string& function, const std::string& file) {
  CheckResult result = failing_check();
  result.spec.profile = true;
  result.shown->tracing = tests::tracing_of(tests::traced_trainer(function, file), 120);
  return result;
}

TEST(CheckText, BeginsWithTheResultInOneLine) {
  EXPECT_THAT(check_text(failing_check(), report::Glyphs::kAscii),
              StartsWith("FAIL train: max_growth: 2.00 MiB/step (1.90 MiB/step to 2.10 MiB/step), "
                         "more than 1.00 MiB/step\n"));
  EXPECT_THAT(check_text(passing_check(), report::Glyphs::kAscii),
              StartsWith("PASS eval: within 1 budget; a leak above 3.43 MiB/h would have been "
                         "seen\n"));
  EXPECT_THAT(check_text(undetermined_check(), report::Glyphs::kAscii),
              StartsWith("CANNOT TELL short: max_growth: it still grows, and warm-up explains that "
                         "as well as a leak; it needs about 40 more steps to decide\n"));
}

// "1.00 MiB/step, more than 1.00 MiB/step" is what it would be otherwise.
TEST(CheckText, SaysByHowMuchABudgetIsExceededThatLooksTheSame) {
  CheckResult result = failing_check();
  ASSERT_EQ(result.rows.front().kind, tracker::BudgetKind::kGrowth);
  result.rows.front().measured = tests::kMiBf + 4096.0;
  result.rows.front().low = tests::kMiBf + 4000.0;
  result.rows.front().high = tests::kMiBf + 4200.0;

  EXPECT_THAT(check_text(result, report::Glyphs::kAscii),
              StartsWith("FAIL train: max_growth: 1.00 MiB/step (1.00 MiB/step to 1.00 MiB/step), "
                         "4.00 KiB/step more than 1.00 MiB/step\n"));
}

TEST(CheckText, SaysWhatIsMissingToTell) {
  CheckResult result = undetermined_check();
  result.shown = failing_check().shown;  // a judged run

  EXPECT_THAT(check_text(result, report::Glyphs::kAscii),
              HasSubstr("because   1000 points of the curve"));
  EXPECT_THAT(check_text(failing_check(), report::Glyphs::kAscii), Not(HasSubstr("because")));
}

TEST(CheckText, ShowsTableChartAndWhatToDo) {
  const std::string text = check_text(failing_check(), report::Glyphs::kAscii);

  EXPECT_THAT(text, HasSubstr("  max_peak    3.00 GiB"));
  EXPECT_THAT(text, HasSubstr("4.00 GiB       ok\n"));
  EXPECT_THAT(text, HasSubstr("EXCEEDED\n"));
  EXPECT_THAT(text, HasSubstr("LEAK: footprint of trainer, pid 1240"));
  EXPECT_THAT(text, HasSubstr("|####"));
  EXPECT_THAT(text, HasSubstr("--profile traces allocations"));
  EXPECT_THAT(check_text(undetermined_check(), report::Glyphs::kAscii),
              HasSubstr("--warmup 200steps"));
}

TEST(CheckText, NamesTheLinesThatGrowOnFailureOnly) {
  CheckResult result = with_sites("collate(Batch&)", "/src/collate.cpp");

  const std::string text = check_text(result, report::Glyphs::kAscii);

  EXPECT_THAT(text,
              HasSubstr("more than 1.00 MiB/step; grows most: collate(Batch&) collate.cpp:42\n"));
  EXPECT_THAT(text, HasSubstr("grows\n  collate(Batch&) collate.cpp:42\n    1.00 MiB/step, 600 "
                              "MiB/min, 98 % of the growth\n    by main main.cpp:7\n"));
  result.status = CheckStatus::kPass;
  EXPECT_THAT(check_text(result, report::Glyphs::kAscii), Not(HasSubstr("collate.cpp:42")));
}

TEST(CheckText, NamesALineOnceWhateverTheNumberOfItsStacks) {
  CheckResult result = failing_check();
  result.shown->tracing = tests::tracing_of(tests::trainer_of_many_stacks(3), 120);

  const std::string text = check_text(result, report::Glyphs::kAscii);

  EXPECT_THAT(text, HasSubstr("  collate(Batch&) collate.cpp:42\n    1.00 MiB/step, "));
  EXPECT_THAT(text, HasSubstr("% of the growth, through 3 call stacks\n    by caller_"));
}

TEST(CheckText, SaysNothingOfAShareThatCannotBe) {
  tracker::RankedLine ranked;
  ranked.verdict = tracker::Verdict::kLeak;
  ranked.growth_bytes_per_s = tests::kMiBf;
  ranked.share_of_growth = 2.4;
  const CheckLine line{&ranked, {}, {}};

  EXPECT_EQ(figures_text(line), "60.0 MiB/min");
}

TEST(CheckText, DoesNotBlameWhatIsSuppressed) {
  CheckResult result = with_sites("collate(Batch&)", "/src/collate.cpp");
  result.suppressed = {{"collate", "known", {}, {}}};

  const std::string text = check_text(result, report::Glyphs::kAscii);

  EXPECT_THAT(text, Not(HasSubstr("grows most")));
  EXPECT_THAT(text, HasSubstr("no line that is not suppressed can be seen to grow"));
  EXPECT_THAT(github_annotations(list(std::move(result))), Not(HasSubstr("file=")));
}

TEST(CheckText, NamesWhatHoldsMostWhereNothingCanBeSeenToGrow) {
  CheckResult result = failing_check();
  tests::SiteRun run;
  run.add_process(tests::trainer_record());
  run.add_site(tests::trainer_record().key, {run.add_frame("collate(Batch&)", "/src/a.cpp", 42)},
               [](double) { return 21 * tests::kSiteMiB; });
  result.shown->tracing = tests::tracing_of(run, 30);

  const std::string text = check_text(result, report::Glyphs::kAscii);

  EXPECT_THAT(text, HasSubstr("--interval 50ms"));
  EXPECT_THAT(text, HasSubstr("  collate(Batch&) a.cpp:42\n    holds 21.0 MiB\n"));
}

TEST(CheckText, TellsWhatIsLeftBehind) {
  CheckResult result = passing_check();
  result.shown->left.strays = {{{77, 1}, "sle\x1b[2Jep", 5U << 20U}};
  result.shown->left.stray_bytes = 5U << 20U;
  result.shown->left.segments.largest = {{"torch_1_2", 4096, 4096, false, 1}};
  result.shown->left.segments.segments = 3;

  const std::string text = check_text(result, report::Glyphs::kAscii);

  EXPECT_THAT(text, HasSubstr("still running: pid 77 (sle\\x1b[2Jep), 5.00 MiB"));
  EXPECT_THAT(text, HasSubstr("/dev/shm/torch_1_2, 4.00 KiB, held by nobody"));
  EXPECT_THAT(text, HasSubstr("and 2 more segments"));
}

TEST(CheckText, OfAFailedCommandSaysBoth) {
  CheckResult result = failing_check();
  result.status = CheckStatus::kError;
  result.problem = "the command failed with status 7";

  EXPECT_THAT(check_text(result, report::Glyphs::kAscii),
              StartsWith("ERROR train: the command failed with status 7; max_growth: 2.00"));
}

TEST(CheckText, EscapesTheNameOfACheck) {
  EXPECT_THAT(check_text(failing_check(kHostile), report::Glyphs::kAscii), Not(HasSubstr("\x1b")));
}

TEST(CheckSummary, CountsAndNamesWhatHasNotPassed) {
  std::vector<CheckResult> results;
  results.push_back(passing_check());
  results.push_back(failing_check("a"));
  results.push_back(undetermined_check());

  EXPECT_EQ(check_summary(results), "checks: 1 passed, 1 failed (a), 1 undetermined (short)\n");
}

TEST(CheckJunit, HasATestCaseForEachCheck) {
  std::vector<CheckResult> results;
  results.push_back(passing_check());
  results.push_back(failing_check());
  results.push_back(undetermined_check());

  const std::string xml = check_junit(results);

  EXPECT_THAT(xml, HasSubstr("tests=\"3\" failures=\"1\" errors=\"1\""));
  EXPECT_THAT(xml, HasSubstr("name=\"train\" time=\"12.500\">\n      <failure type=\"budget\""));
  EXPECT_THAT(xml, HasSubstr("<error type=\"undetermined\""));
  EXPECT_THAT(xml, HasSubstr("name=\"eval\" time=\"12.500\">\n      <system-out>PASS eval"));
}

TEST(CheckJunit, NamesTheLineInTheMessage) {
  EXPECT_THAT(check_junit(list(with_sites("collate(Batch&)", "/src/collate.cpp"))),
              HasSubstr("grows most: collate(Batch&amp;) collate.cpp:42\">FAIL train"));
}

TEST(CheckJunit, LetsNoNameOutOfItsAttribute) {
  const std::string xml = check_junit(list(failing_check(kHostile)));

  EXPECT_THAT(xml, Not(HasSubstr("<script>")));
  EXPECT_THAT(xml, Not(HasSubstr("a\"]]>")));
  EXPECT_THAT(xml, Not(HasSubstr("\x1b")));
  EXPECT_THAT(xml, Not(HasSubstr("\xff")));
  EXPECT_THAT(xml, HasSubstr("a&quot;]]&gt;&lt;script&gt;"));
}

// "A leak above 12 KiB/step would have been seen" does not stand above "LEAK 2 MiB/step".
TEST(CheckText, SaysOfAnAllowedLeakThatItLeaks) {
  CheckResult result = failing_check();
  result.status = CheckStatus::kPass;
  tracker::BudgetRow row = tests::growth_row(tracker::BudgetState::kWithin);
  row.limit = 3.0 * (1 << 20);
  result.rows = {row};

  EXPECT_EQ(answer_line(result), "leaks 2.00 MiB/step, the budget allows 3.00 MiB/step");
  result.rows.push_back(tests::peak_row(tracker::BudgetState::kWithin));
  EXPECT_EQ(answer_line(result),
            "leaks 2.00 MiB/step, the budget allows 3.00 MiB/step; within 2 budgets");
  result.rows.erase(result.rows.begin());
  EXPECT_EQ(answer_line(result), "within 1 budget");
}

TEST(CheckMarkdown, HasTheAnswerAndATable) {
  const std::string text = check_markdown(list(failing_check()));

  EXPECT_THAT(text, HasSubstr("### FAIL: train\n"));
  EXPECT_THAT(text, HasSubstr("| `max_growth` | 2.00 MiB/step (1.90 MiB/step to 2.10 MiB/step) | "
                              "1.00 MiB/step | **EXCEEDED** |"));
  EXPECT_THAT(text, HasSubstr("<details open>"));
  EXPECT_THAT(text, HasSubstr("```text\n"));
}

TEST(CheckMarkdown, ListsTheLinesThatGrow) {
  EXPECT_THAT(check_markdown(list(with_sites("collate(int)", "/src/collate.cpp"))),
              HasSubstr("- grows: collate(int) collate.cpp:42: 1.00 MiB/step, 600 MiB/min"));
}

TEST(CheckMarkdown, TakesNoNameForASign) {
  CheckResult result = with_sites("f```\n<img src=x onerror=y>", "/src/a.cpp");
  result.spec.name = kHostile;

  const std::string text = check_markdown(list(std::move(result)));

  EXPECT_THAT(text, Not(HasSubstr("<script>")));
  EXPECT_THAT(text, Not(HasSubstr("@team")));
  EXPECT_THAT(text, Not(HasSubstr("[x](")));
  EXPECT_THAT(text, HasSubstr("````text\n"));  // longer than the longest in it
}

TEST(CheckJson, HoldsEverythingUnderOneSchema) {
  CheckResult result = with_sites("collate(Batch&)", "/src/collate.cpp");
  result.changes = {{"plateau", false, {4, 1e9, 1.2e9}, "abc", "2026-01-01T00:00:00Z"}};

  const json document = json::parse(check_json(list(std::move(result))));

  EXPECT_EQ(document.at("schema"), 1);
  EXPECT_EQ(document.at("result"), "fail");
  EXPECT_EQ(document.at("exit_code"), 1);
  const json& check = document.at("checks").at(0);
  EXPECT_EQ(check.at("name"), "train");
  EXPECT_EQ(check.at("budgets").at(0).at("budget"), "max_growth");
  EXPECT_EQ(check.at("budgets").at(0).at("state"), "exceeded");
  EXPECT_EQ(check.at("budgets").at(0).at("unit"), "bytes_per_step");
  EXPECT_EQ(check.at("run").at("command_status"), 0);
  EXPECT_EQ(check.at("run").at("track").at("verdict"), "leak");
  EXPECT_EQ(check.at("run").at("profile").at("sites").at(0).at("verdict"), "leak");
  const json& line = check.at("growing_lines").at(0);
  EXPECT_EQ(line.at("function"), "collate(Batch&)");
  EXPECT_EQ(line.at("file"), "/src/collate.cpp");
  EXPECT_EQ(line.at("line"), 42);
  EXPECT_NEAR(line.at("growth_bytes_per_step").get<double>(), tests::kMiBf, 0.02 * tests::kMiBf);
  EXPECT_EQ(check.at("history_changes").at(0).at("commit"), "abc");
}

TEST(CheckJson, SurvivesAnyBytes) {
  const json document = json::parse(check_json(list(failing_check(kHostile))));

  EXPECT_THAT(document.at("checks").at(0).at("name").get<std::string>(), StartsWith("a\"]]>"));
}

TEST(GithubAnnotations, PointAtTheLine) {
  EXPECT_THAT(
      github_annotations(list(with_sites("collate(Batch&)", "/src/collate.cpp"))),
      StartsWith("::error file=/src/collate.cpp,line=42,title=tidemark check train%3A FAIL::"));
}

TEST(GithubAnnotations, AreWarningsWhereNobodyCanTellAndNothingWhereAllIsWell) {
  EXPECT_THAT(github_annotations(list(undetermined_check())), StartsWith("::warning title="));
  EXPECT_EQ(github_annotations(list(passing_check())), "");
}

TEST(GithubAnnotations, AreOneLineEachWhateverTheNames) {
  const std::string text = github_annotations(list(failing_check(kHostile)));

  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(text.find("::error", 2), std::string::npos);
}

TEST(GithubLog, HasNoCommandOfOthers) {
  EXPECT_EQ(without_workflow_commands("a\n  ::set-env name=x::y\n##[command]z\nb ::c::\n"),
            "a\n  \\::set-env name=x::y\n\\##[command]z\nb ::c::\n");
}

}  // namespace
}  // namespace tidemark::check
