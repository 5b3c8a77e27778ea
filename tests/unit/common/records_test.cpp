// SPDX-License-Identifier: Apache-2.0
#include "common/records.h"

#include <set>
#include <string_view>

#include <gtest/gtest.h>

namespace tidemark {
namespace {

TEST(LossName, IsThatOfItsKind) {
  EXPECT_EQ(LossName(LossKind::kPssDenied).text(), "pss_denied");
  EXPECT_EQ(LossName("pss_denied"), LossName(LossKind::kPssDenied));
  EXPECT_NE(LossName("pss_denied"), LossName(LossKind::kBadLines));
}

TEST(LossName, KeepsTheNameThatAnotherVersionGave) {
  EXPECT_EQ(LossName("gpus_melted").text(), "gpus_melted");
  EXPECT_EQ(LossName("gpus_melted"), LossName("gpus_melted"));
  EXPECT_NE(LossName("gpus_melted"), LossName("gpus_frozen"));
}

TEST(LossName, IsDifferentForEachKind) {
  const std::set<std::string_view> names(loss_names().begin(), loss_names().end());

  EXPECT_EQ(names.size(), loss_names().size());
  EXPECT_EQ(loss_name(LossKind::kTraceLooksDamaged), "trace_looks_damaged");
}

}  // namespace
}  // namespace tidemark
