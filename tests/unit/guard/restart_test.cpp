// SPDX-License-Identifier: Apache-2.0
#include "guard/restart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "guard/guard.h"

namespace tidemark::guard {
namespace {

using testing::HasSubstr;

TEST(RestartLedger, StartsAgainAsLongAsStepsAdvance) {
  RestartLedger ledger(true, 10);
  EXPECT_TRUE(ledger.ended({EndedBy::kGuard, 50}).restarts);
  EXPECT_TRUE(ledger.ended({EndedBy::kOomKiller, 51}).restarts);

  const RestartAnswer answer = ledger.ended({EndedBy::kGuard, 51});

  EXPECT_FALSE(answer.restarts);
  EXPECT_THAT(answer.why, HasSubstr("not come beyond step 51"));
  EXPECT_EQ(ledger.restarts(), 2U);
}

TEST(RestartLedger, AStartWithoutAnyStepIsNoProgress) {
  RestartLedger ledger(true, 10);
  ledger.ended({EndedBy::kGuard, 50});
  EXPECT_FALSE(ledger.ended({EndedBy::kGuard, {}}).restarts);
}

TEST(RestartLedger, WithoutKnownStepsItStartsOnceAndSaysWhy) {
  RestartLedger ledger(true, 10);
  const RestartAnswer first = ledger.ended({EndedBy::kGuard, {}});
  EXPECT_TRUE(first.restarts);
  EXPECT_THAT(first.why, HasSubstr("no steps are known"));

  const RestartAnswer second = ledger.ended({EndedBy::kGuard, {}});

  EXPECT_FALSE(second.restarts);
  EXPECT_THAT(second.why, HasSubstr("--step-regex"));
}

TEST(RestartLedger, CountsRestarts) {
  RestartLedger ledger(true, 2);
  EXPECT_TRUE(ledger.ended({EndedBy::kGuard, 1}).restarts);
  EXPECT_TRUE(ledger.ended({EndedBy::kGuard, 2}).restarts);
  const RestartAnswer answer = ledger.ended({EndedBy::kGuard, 3});
  EXPECT_FALSE(answer.restarts);
  EXPECT_THAT(answer.why, HasSubstr("--max-restarts 2"));
}

TEST(RestartLedger, WhatEndedByItselfOrByItsUserStaysEnded) {
  RestartLedger ledger(true, 10);
  EXPECT_FALSE(ledger.ended({EndedBy::kItself, 5}).restarts);
  EXPECT_FALSE(ledger.ended({EndedBy::kUser, 5}).restarts);
  EXPECT_FALSE(RestartLedger(false, 10).ended({EndedBy::kGuard, 5}).restarts);
}

TEST(ChunkOutput, NumbersTheRunFiles) {
  EXPECT_EQ(chunk_output("night.tidemark", 1), "night.tidemark");
  EXPECT_EQ(chunk_output("night.tidemark", 2), "night.2.tidemark");
  EXPECT_EQ(chunk_output("/a.b/night", 3), "/a.b/night.3");
  EXPECT_EQ(chunk_output("/a/.hidden", 2), "/a/.hidden.2");
  EXPECT_EQ(chunk_output("", 2), "");
}

TEST(ParseSignal, TakesNamesAndNumbersThatCanBeCaught) {
  EXPECT_EQ(*parse_signal("TERM"), SIGTERM);
  EXPECT_EQ(*parse_signal("SIGUSR1"), SIGUSR1);
  EXPECT_EQ(*parse_signal("2"), SIGINT);
  for (const char* text : {"KILL", "9", "STOP", "", "0", "-1", "term", "999"}) {
    EXPECT_FALSE(parse_signal(text)) << text;
  }
}

}  // namespace
}  // namespace tidemark::guard
