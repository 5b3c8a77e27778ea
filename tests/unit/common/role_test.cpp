// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "common/records.h"

namespace tidemark {
namespace {

TEST(Role, NamesRoundTrip) {
  for (int i = 0; i < kRoleCount; ++i) {
    const auto role = static_cast<Role>(i);
    EXPECT_EQ(role_from_name(role_name(role)), role);
  }
  EXPECT_EQ(role_from_name("main"), Role::kTrainer);
  EXPECT_EQ(role_from_name("banana"), std::nullopt);
}

TEST(Records, EventAndMarkerNamesRoundTrip) {
  for (const auto kind : {EventKind::kSpawn, EventKind::kOomKill, EventKind::kReparent}) {
    EXPECT_EQ(event_from_name(event_name(kind)), kind);
  }
  for (const auto kind : {MarkerKind::kStep, MarkerKind::kPhaseEnd}) {
    EXPECT_EQ(marker_from_name(marker_name(kind)), kind);
  }
}

TEST(ProcessSample, FootprintIsUnknownWithoutItsParts) {
  ProcessSample sample;
  sample.rss_bytes = 100;
  EXPECT_EQ(sample.footprint_bytes(), std::nullopt);

  sample.rss_anon_bytes = 70;
  sample.rss_shmem_bytes = 20;
  sample.swap_bytes = 5;
  EXPECT_EQ(sample.footprint_bytes(), 95U);
}

}  // namespace
}  // namespace tidemark
