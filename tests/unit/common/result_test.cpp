// SPDX-License-Identifier: Apache-2.0
#include "common/result.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace tidemark {
namespace {

Result<int> half_of(int value) {
  if (value % 2 != 0) {
    return Error{Errc::kUsage, std::to_string(value) + " is odd", 7};
  }
  return value / 2;
}

Status check_even(int value, int& calls) {
  ++calls;
  TIDEMARK_TRY(half_of(value));
  ++calls;
  return ok();
}

Result<std::string> quarter_of(int value) {
  TIDEMARK_TRY_ASSIGN(const int half, half_of(value));
  int quarter = 0;
  TIDEMARK_TRY_ASSIGN(quarter, half_of(half));
  return std::to_string(quarter);
}

Result<std::unique_ptr<int>> boxed(int value) {
  TIDEMARK_TRY_ASSIGN(auto box, Result<std::unique_ptr<int>>(std::make_unique<int>(value)));
  return box;
}

TEST(ResultTry, GoesOnAfterSuccess) {
  int calls = 0;

  EXPECT_TRUE(check_even(4, calls));

  EXPECT_EQ(calls, 2);
}

TEST(ResultTry, ReturnsTheWholeErrorAtOnce) {
  int calls = 0;

  const Status status = check_even(5, calls);

  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::kUsage);
  EXPECT_EQ(status.error().what, "5 is odd");
  EXPECT_EQ(status.error().sys_errno, 7);
  EXPECT_EQ(calls, 1);
}

TEST(ResultTryAssign, DeclaresOrAssignsTheValue) {
  const auto quarter = quarter_of(12);

  ASSERT_TRUE(quarter);
  EXPECT_EQ(*quarter, "3");
}

TEST(ResultTryAssign, ReturnsTheErrorAsThatOfAnotherResult) {
  EXPECT_EQ(quarter_of(7).error().what, "7 is odd");
  EXPECT_EQ(quarter_of(6).error().what, "3 is odd");
}

TEST(ResultTryAssign, MovesWhatCannotBeCopied) {
  const auto box = boxed(3);

  ASSERT_TRUE(box);
  EXPECT_EQ(**box, 3);
}

}  // namespace
}  // namespace tidemark
