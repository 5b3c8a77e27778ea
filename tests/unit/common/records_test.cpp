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

// Files and JSON have the names.
TEST(OwnerRecord, HasAKindThatIsFoundByItsName) {
  for (const auto kind : {OwnerKind::kContainer, OwnerKind::kVariable, OwnerKind::kName,
                          OwnerKind::kGarbage, OwnerKind::kNativeHold, OwnerKind::kNative}) {
    EXPECT_EQ(owner_kind_from_name(owner_kind_name(kind)), kind);
  }
  EXPECT_EQ(owner_kind_name(OwnerKind::kNativeHold), "native_hold");
  EXPECT_EQ(owner_kind_from_name("landlord"), std::nullopt);
}

TEST(InterventionRecord, HasAKindAndAnOutcomeThatAreFoundByTheirNames) {
  for (int i = 0; i < kInterventionKindCount; ++i) {
    const auto kind = static_cast<InterventionKind>(i);
    EXPECT_EQ(intervention_kind_from_name(intervention_kind_name(kind)), kind);
  }
  for (const auto outcome : {InterventionOutcome::kRuledOut, InterventionOutcome::kConfirmed,
                             InterventionOutcome::kCannotTell}) {
    EXPECT_EQ(intervention_outcome_from_name(intervention_outcome_name(outcome)), outcome);
  }
  EXPECT_EQ(intervention_kind_name(InterventionKind::kMappedFiles), "mapped_files");
  EXPECT_EQ(intervention_outcome_name(InterventionOutcome::kCannotTell), "cannot_tell");
  EXPECT_EQ(intervention_kind_from_name("reboot"), std::nullopt);
}

TEST(HeapLook, HasAReadingThatIsFoundByItsName) {
  for (const auto reading : {HeapReading::kRunning, HeapReading::kStopped, HeapReading::kFrozen}) {
    EXPECT_EQ(heap_reading_from_name(heap_reading_name(reading)), reading);
  }
  EXPECT_EQ(heap_reading_name(HeapReading::kFrozen), "frozen");
  EXPECT_EQ(heap_reading_from_name("melted"), std::nullopt);
}

std::string program_of(std::string argv, std::string comm = "python3") {
  ProcessRecord record;
  record.argv = std::move(argv);
  record.comm = std::move(comm);
  return record.program();
}

TEST(ProcessRecord, IsCalledAsPeopleCallIt) {
  EXPECT_EQ(program_of("python3 train.py --lr 0.1"), "train.py");
  EXPECT_EQ(program_of("/opt/venv/bin/python3.11 -u -X faulthandler src/train.py"), "train.py");
  EXPECT_EQ(program_of("python3 -m torch.distributed.run x.py"), "torch.distributed.run");
  EXPECT_EQ(program_of("python3 -c import torch"), "python3");
  EXPECT_EQ(program_of("python3 -W"), "python3");
  EXPECT_EQ(program_of("python3"), "python3");
  EXPECT_EQ(program_of(""), "python3");
  EXPECT_EQ(program_of("bin/tidemark-harness train", "tidemark-harnes"), "tidemark-harness");
  EXPECT_EQ(program_of("redis-server *:6379", "redis-server"), "redis-server");
  EXPECT_EQ(program_of("python3 train.py", "pt_main_thread"), "train.py");
}

}  // namespace
}  // namespace tidemark
