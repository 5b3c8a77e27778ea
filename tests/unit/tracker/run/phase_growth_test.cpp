// SPDX-License-Identifier: Apache-2.0
#include "tracker/causes/signature_facts.h"

#include <gtest/gtest.h>

namespace tidemark::tracker {
namespace {

Series curve(double length_s, double (*bytes)(double)) {
  Series series;
  for (double t_s = 0.0; t_s <= length_s; t_s += 1.0) {
    series.add(t_s, kUnknown, bytes(t_s));
  }
  return series;
}

std::vector<Phase> every_hundred(PhaseKind kind) {
  std::vector<Phase> phases;
  for (int i = 1; i < 6; ++i) {
    phases.push_back({kind, i * 100.0, i * 100.0 + 10.0});
  }
  return phases;
}

TEST(PhaseKind, IsToldByTheName) {
  EXPECT_EQ(phase_kind("Evaluation"), PhaseKind::kEval);
  EXPECT_EQ(phase_kind("val"), PhaseKind::kEval);
  EXPECT_EQ(phase_kind("save_ckpt"), PhaseKind::kCheckpoint);
  EXPECT_EQ(phase_kind("profiling"), PhaseKind::kProfile);
  EXPECT_EQ(phase_kind("tokenize"), PhaseKind::kTokenize);
  EXPECT_EQ(phase_kind("torch.jit.trace"), PhaseKind::kExport);
  EXPECT_EQ(phase_kind("log_metrics"), PhaseKind::kLogging);
  EXPECT_EQ(phase_kind("forward"), PhaseKind::kOther);
  EXPECT_EQ(phase_kind("login"), PhaseKind::kOther);
}

TEST(Phases, LeaveOutThoseThatNeverEnded) {
  using Kind = RunEvent::Kind;
  const std::vector<RunEvent> events{{1.0, Kind::kPhaseBegin, Role::kOther, "eval"},
                                     {2.0, Kind::kPhaseBegin, Role::kOther, "save"},
                                     {3.0, Kind::kPhaseEnd, Role::kOther, "eval"},
                                     {4.0, Kind::kPhaseEnd, Role::kOther, "unknown"}};

  const std::vector<Phase> phases = phases_of(events);

  ASSERT_EQ(phases.size(), 1U);
  EXPECT_EQ(phases[0].kind, PhaseKind::kEval);
  EXPECT_EQ(phases[0].from_s, 1.0);
  EXPECT_EQ(phases[0].to_s, 3.0);
}

TEST(GrowthInPhases, KnowsRisesThatStay) {
  const Series stairs =
      curve(600, [](double t_s) { return 1000.0 + 100.0 * int((t_s - 5.0) / 100.0); });

  const PhaseGrowth growth =
      growth_in_phases(stairs, every_hundred(PhaseKind::kCheckpoint), PhaseKind::kCheckpoint, 50.0);

  EXPECT_EQ(growth.phases, 5U);
  EXPECT_EQ(growth.rising, 5U);
  EXPECT_EQ(growth.kept, growth.rising);
  EXPECT_EQ(growth.released, 0U);
}

TEST(GrowthInPhases, KnowsRisesThatAreGivenBack) {
  const Series bumps = curve(600, [](double t_s) {
    return t_s > 90.0 && int(t_s) % 100 > 2 && int(t_s) % 100 < 9 ? 1500.0 : 1000.0;
  });

  const PhaseGrowth growth =
      growth_in_phases(bumps, every_hundred(PhaseKind::kEval), PhaseKind::kEval, 50.0);

  EXPECT_EQ(growth.rising, 5U);
  EXPECT_EQ(growth.released, 5U);
  EXPECT_EQ(growth.inside_share(), 1.0);
}

TEST(GrowthInPhases, CountsGrowthBetweenPhasesAgainstThem) {
  const Series line = curve(600, [](double t_s) { return 1000.0 + 10.0 * t_s; });

  const PhaseGrowth growth =
      growth_in_phases(line, every_hundred(PhaseKind::kEval), PhaseKind::kEval, 50.0);

  EXPECT_NEAR(growth.inside_share(), 0.1, 0.02);
  EXPECT_EQ(
      growth_in_phases(line, every_hundred(PhaseKind::kEval), PhaseKind::kExport, 50.0).phases, 0U);
}

}  // namespace
}  // namespace tidemark::tracker
