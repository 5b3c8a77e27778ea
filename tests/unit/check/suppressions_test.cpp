// SPDX-License-Identifier: Apache-2.0
#include "check/suppressions.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/check/sample_check.h"

namespace tidemark::check {
namespace {

using std::chrono::days;
using std::chrono::sys_days;
using tests::growth_row;
using tests::kMiBf;
using tracker::BudgetRows;
using tracker::BudgetState;

const sys_days kToday = std::chrono::year(2026) / 11 / 16;

Suppression of_site(const std::string& site, sys_days expires = kToday + days(30)) {
  return {site, "known", expires, {}};
}

class Suppressions : public testing::Test {
 protected:
  Suppressions()
      : tracing_(tests::tracing_of(
            tests::traced_trainer("cache::Filler::fill(int)", "/src/cache/fill.cpp"), 120)),
        report_(*tracing_->report) {}

  bool matches(const std::string& pattern) const {
    return matches_site(pattern, *report_.run, report_.ranking.sites.front().frames);
  }
  SuppressedGrowth growth(const std::vector<Suppression>& suppressions) const {
    return suppressed_growth(report_, suppressions);
  }

  std::unique_ptr<CheckTracing> tracing_;
  report::ProfileReport report_;
};

TEST_F(Suppressions, MatchFunctionFileAndLineOfAnyFrame) {
  EXPECT_TRUE(matches("cache::Filler::fill(int)"));
  EXPECT_TRUE(matches("cache::Filler::fill"));
  EXPECT_TRUE(matches("cache::*"));
  EXPECT_TRUE(matches("/src/cache/*"));
  EXPECT_TRUE(matches("fill.cpp"));
  EXPECT_TRUE(matches("fill.cpp:42"));
  EXPECT_TRUE(matches("/src/cache/fill.cpp:42"));
  EXPECT_TRUE(matches("main"));
  EXPECT_TRUE(matches("fill"));
  EXPECT_FALSE(matches("fil"));
  EXPECT_FALSE(matches("fill.cpp:43"));
  EXPECT_FALSE(matches("other*"));
}

TEST(SuppressionPattern, DoesNotMindANamelessNamespace) {
  const auto tracing = tests::tracing_of(
      tests::traced_trainer("(anonymous namespace)::leak_here(unsigned long)", "/src/a.cpp"), 120);
  const auto& report = tracing->report;
  ASSERT_TRUE(report);
  const auto& frames = report->ranking.sites.front().frames;

  EXPECT_TRUE(matches_site("leak_here*", *report->run, frames));
  EXPECT_TRUE(matches_site("leak_here", *report->run, frames));
  EXPECT_FALSE(matches_site("here", *report->run, frames));
}

TEST_F(Suppressions, TakeTheGrowthOfTheirSitesOut) {
  const SuppressedGrowth known = growth({of_site("other*"), of_site("cache::*"), of_site("main")});

  EXPECT_EQ(known.used, std::set<std::size_t>{1});  // counted once
  ASSERT_TRUE(known.bytes_per_step);
  EXPECT_NEAR(*known.bytes_per_step, kMiBf, 0.02 * kMiBf);
  EXPECT_NEAR(known.bytes_per_s, 10 * kMiBf, 0.2 * kMiBf);
}

TEST_F(Suppressions, TakeALineOutWhenTheyKnowAllOfItsStacks) {
  const tracker::RankedLine& line = report_.ranking.lines.front();

  EXPECT_TRUE(is_suppressed(report_, line, std::vector{of_site("fill.cpp:42")}));
  EXPECT_FALSE(is_suppressed(report_, line, std::vector{of_site("fill.cpp:43")}));
}

TEST(SuppressedLine, CountsAsAWholeAlsoWhereItsStacksAreOfFewBlocks) {
  const auto tracing = tests::tracing_of(tests::trainer_of_many_stacks(40), 120);
  const report::ProfileReport& report = *tracing->report;
  ASSERT_EQ(report.ranking.lines.front().sites.size(), 40U);

  const SuppressedGrowth known = suppressed_growth(report, std::vector{of_site("collate.cpp:42")});

  EXPECT_NEAR(known.bytes_per_step.value_or(0.0), kMiBf, 0.05 * kMiBf);
}

TEST(SuppressedLine, LeavesTheStacksThatNobodyKnows) {
  const auto tracing = tests::tracing_of(tests::trainer_of_many_stacks(2), 120);
  const report::ProfileReport& report = *tracing->report;

  const SuppressedGrowth known = suppressed_growth(report, std::vector{of_site("caller_0")});

  EXPECT_FALSE(
      is_suppressed(report, report.ranking.lines.front(), std::vector{of_site("caller_0")}));
  EXPECT_NEAR(known.bytes_per_step.value_or(0.0), 0.5 * kMiBf, 0.05 * kMiBf);
}

TEST(Suppress, TurnsWhatIsExplainedIntoSuppressed) {
  BudgetRows rows{growth_row(BudgetState::kExceeded)};  // 2 MiB/step, limit 1 MiB/step

  suppress(rows, {0.0, 1.5 * kMiBf, 0.1, {0}});

  EXPECT_EQ(rows[0].state, BudgetState::kSuppressed);
  EXPECT_DOUBLE_EQ(*rows[0].measured, 0.5 * kMiBf);
}

TEST(Suppress, LeavesWhatIsTooMuchWithoutTheKnownSites) {
  BudgetRows rows{growth_row(BudgetState::kExceeded)};

  suppress(rows, {0.0, 0.5 * kMiBf, 0.1, {0}});

  EXPECT_EQ(rows[0].state, BudgetState::kExceeded);
  EXPECT_DOUBLE_EQ(*rows[0].measured, 1.5 * kMiBf);
}

TEST(Suppress, ForgivesTheTracersEstimateATenth) {
  BudgetRows rows{growth_row(BudgetState::kExceeded)};
  rows[0].limit = 0.0;

  suppress(rows, {0.0, 1.85 * kMiBf, 0.1, {0}});

  EXPECT_EQ(rows[0].state, BudgetState::kSuppressed);
}

TEST_F(Suppressions, DoubtTheSamplesOfAShortRunMore) {
  report_.coverage.sample_every_bytes.reset();
  const double exact = growth({of_site("cache::*")}).doubt;
  report_.coverage.sample_every_bytes = 512U << 10U;
  const double sampled = growth({of_site("cache::*")}).doubt;

  EXPECT_DOUBLE_EQ(exact, 0.1);
  EXPECT_NEAR(sampled, 0.1 + 3 * std::sqrt(0.5 / 1000), 0.03);  // of about a gigabyte
}

TEST(Suppress, LeavesOtherBudgetsAlone) {
  BudgetRows rows{tests::peak_row(BudgetState::kExceeded)};

  suppress(rows, {1e12, 1e12, 0.1, {0}});

  EXPECT_EQ(rows[0].state, BudgetState::kExceeded);
}

TEST(SuppressionsOf, AreThoseOfTheCheckAndThoseForAll) {
  std::vector<Suppression> all{of_site("a"), of_site("b"), of_site("c", kToday - days(1))};
  all[1].checks = {"eval"};

  EXPECT_EQ(suppressions_of(all, "train", kToday, false).size(), 1U);
  EXPECT_EQ(suppressions_of(all, "eval", kToday, false).size(), 2U);
  ASSERT_EQ(suppressions_of(all, "train", kToday, true).size(), 1U);
  EXPECT_EQ(suppressions_of(all, "train", kToday, true)[0].site, "c");
}

TEST(SuppressionsOf, ExpireAfterTheirDay) {
  const std::vector<Suppression> all{of_site("a", kToday), of_site("b", kToday - days(1))};

  ASSERT_EQ(suppressions_of(all, "train", kToday, false).size(), 1U);
  EXPECT_EQ(suppressions_of(all, "train", kToday, false)[0].site, "a");
}

TEST(Date, IsADayOfTheCalendar) {
  EXPECT_EQ(date_text(*parse_date("2028-02-29")), "2028-02-29");
  for (const char* const text :
       {"2027-02-29", "2027-13-01", "27-01-01", "2027-1-1", "2027-01-01x", "", "2027/01/01"}) {
    EXPECT_FALSE(parse_date(text)) << text;
  }
}

}  // namespace
}  // namespace tidemark::check
