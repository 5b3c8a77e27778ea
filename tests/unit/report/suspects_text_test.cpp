// SPDX-License-Identifier: Apache-2.0
#include "report/suspects_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/judged_run.h"
#include "tests/support/owner_run.h"

namespace tidemark::report {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using tracker::Suspect;
using tracker::SuspectRows;
using tracker::SuspectRule;
using tracker::SuspectState;

// What looks at a leaking collator say, with a run that has no compile workers.
SuspectRows rows_of_collator() {
  tests::OwnerRun run = tests::leaking_collator();
  run.adjust = [](HeapFacts::OfProcess& of, std::size_t) { of.look.interpreter.gc_enabled = true; };
  tracker::OwnerTrackBuilder builder;
  for (const Tick& tick : run.ticks(3)) {
    EXPECT_TRUE(builder.add(tick));
  }
  const tracker::OwnerRanking ranking = tracker::rank_owners(builder.owners(), {});
  const tracker::JudgedRun judged = tests::leaking_run(1000, 1).judged();
  tracker::SuspectInputs inputs;
  inputs.run = &judged;
  inputs.owners = &builder.owners();
  inputs.ranking = &ranking;
  return tracker::judge_suspects(inputs);
}

TEST(SuspectsText, PutsWhatItIsFirstAndSaysWhyItIsNotTheRest) {
  const std::string table = suspects_table(rows_of_collator(), 200);

  EXPECT_THAT(table,
              StartsWith("THIS IS IT   collator                        `__main__.collator.cache` "
                         "grew by 40.0 MiB, 100 % of the growth\n"));
  EXPECT_THAT(table, HasSubstr("\nnot it       dataset loading                 "
                               "`__main__.dataset` held 210 MiB at all 3 looks\n"));
  EXPECT_THAT(table, HasSubstr("\nnot it       garbage in cycles               no garbage was "
                               "found at all 3 looks\n"));
  EXPECT_THAT(table, HasSubstr("\nnot it       compile workers                 there are none\n"));
  EXPECT_THAT(table, HasSubstr("\nnot it       log_history                     "
                               "`__main__.collator.cache` holds the growth\n"));
}

TEST(SuspectsText, HasAShortFormForALine) {
  const SuspectRows rows = rows_of_collator();

  EXPECT_EQ(excluded_suspects_text(rows),
            "dataset loading (210 MiB, constant), gradient accumulation, log_history, tokenizer "
            "and processor caches, metrics lists (others hold the growth), garbage in cycles, "
            "compile workers (none), optimizer state (8.00 MiB, constant)");
  EXPECT_EQ(open_suspects_text(rows), "");
  EXPECT_EQ(excluded_suspects_text(tracker::judge_suspects({})), "");
  EXPECT_THAT(open_suspects_text(tracker::judge_suspects({})),
              StartsWith("dataset loading, gradient accumulation, log_history, "));
}

TEST(SuspectsText, SaysWhatWouldTell) {
  tracker::SuspectRow row;
  row.state = SuspectState::kCannotTell;
  for (const auto& [rule, words] :
       {std::pair{SuspectRule::kNoLooks, "tidemark owners tells"},
        std::pair{SuspectRule::kOneLook, "a second one tells (tidemark owners)"},
        std::pair{SuspectRule::kPartialLooks, "a larger --budget tells"},
        std::pair{SuspectRule::kNotFound, "tidemark profile tells"},
        std::pair{SuspectRule::kUnnamedOwner, "its name does not say what it is for"},
        std::pair{SuspectRule::kNotWatched, "tidemark track tells"},
        std::pair{SuspectRule::kTooEarly, "too early for a verdict"}}) {
    row.rule = rule;
    EXPECT_THAT(suspect_reason_text(row), HasSubstr(words)) << tracker::suspect_rule_name(rule);
  }
}

TEST(SuspectsText, EscapesNamesOfTheJob) {
  tracker::SuspectRow row;
  row.state = SuspectState::kThisIsIt;
  row.rule = SuspectRule::kOwnerGrows;
  row.what = "__main__.\x1b[2J";
  row.growth_bytes = 1024.0;

  EXPECT_EQ(suspect_reason_text(row), "`__main__.\\x1b[2J` grew by 1.00 KiB");
}

TEST(SuspectsJson, HasARowForEachWithItsFigures) {
  JsonWriter json;
  json.begin_object();
  add_suspects(json, rows_of_collator());
  json.end_object();

  const nlohmann::json parsed = nlohmann::json::parse(json.text());
  ASSERT_EQ(parsed["suspects"].size(), tracker::kSuspectCount);
  const nlohmann::json& collator = parsed["suspects"][8];
  EXPECT_EQ(collator["suspect"], "collator");
  EXPECT_EQ(collator["state"], "this_is_it");
  EXPECT_EQ(collator["rule"], "owner_grows");
  EXPECT_EQ(collator["what"], "__main__.collator.cache");
  EXPECT_EQ(collator["growth_bytes"], 40 << 20);
  EXPECT_EQ(collator["looks"], 3);
  EXPECT_TRUE(collator["processes"].is_null());
  EXPECT_EQ(parsed["suspects"][6]["rule"], "no_processes");
}

}  // namespace
}  // namespace tidemark::report
