// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/cfi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tests/unit/tracer/unwind/eh_frame_builder.h"

namespace tidemark::tracer {
namespace {

using tests::Bytes;
using tests::EhFrameBuilder;

EhFrameBuilder three_functions() {
  EhFrameBuilder builder;
  builder.functions = {
      {0x1000, 0x10, {0x0e, 16}}, {0x1010, 0x20, {0x44, 0x0e, 24}}, {0x1040, 0x10, {0x0e, 32}}};
  return builder;
}

Rule rule_at(const Bytes& bytes, std::int64_t offset) {
  const LoadedModule module = EhFrameBuilder::module_of(bytes);
  return rule_from_tables(module, module.start + static_cast<std::uint64_t>(offset));
}

Rule from_sp(std::int64_t cfa) { return {RuleKind::kFromSp, BpRule::kSame, cfa, 0}; }

TEST(EhFrame, FindsTheFunctionThatHoldsAnAddress) {
  const Bytes bytes = three_functions().build();

  EXPECT_EQ(rule_at(bytes, 0x1000), from_sp(16));
  EXPECT_EQ(rule_at(bytes, 0x100f), from_sp(16));
  EXPECT_EQ(rule_at(bytes, 0x1010), from_sp(8));
  EXPECT_EQ(rule_at(bytes, 0x1014), from_sp(24));
  EXPECT_EQ(rule_at(bytes, 0x102f), from_sp(24));
  EXPECT_EQ(rule_at(bytes, 0x104f), from_sp(32));
}

TEST(EhFrame, HasNoTableForAddressesBetweenFunctions) {
  const Bytes bytes = three_functions().build();

  EXPECT_EQ(rule_at(bytes, 0xfff).kind, RuleKind::kNoTable);
  EXPECT_EQ(rule_at(bytes, 0x1030).kind, RuleKind::kNoTable);
  EXPECT_EQ(rule_at(bytes, 0x1050).kind, RuleKind::kNoTable);
}

TEST(EhFrame, FindsFunctionsBelowTheirTable) {
  EhFrameBuilder builder;
  builder.functions = {{-0x2000, 0x10, {0x0e, 16}}, {-0x1000, 0x10, {0x0e, 24}}};
  const Bytes bytes = builder.build();

  EXPECT_EQ(rule_at(bytes, -0x2000), from_sp(16));
  EXPECT_EQ(rule_at(bytes, -0xff1), from_sp(24));
}

TEST(EhFrame, SkipsPersonalityAndLanguageData) {
  EhFrameBuilder builder = three_functions();
  builder.augmentation = "zPLR";
  builder.augmentation_data = {0x9b, 1, 2, 3, 4, 0x1b, 0x1b};

  EXPECT_EQ(rule_at(builder.build(), 0x1000), from_sp(16));
}

TEST(EhFrame, TellsTheFrameOfASignal) {
  EhFrameBuilder builder = three_functions();
  builder.augmentation = "zRS";

  EXPECT_EQ(rule_at(builder.build(), 0x1000).kind, RuleKind::kSignalFrame);
}

TEST(EhFrame, RefusesLettersThatItDoesNotKnow) {
  EhFrameBuilder builder = three_functions();
  builder.augmentation = "zRX";

  EXPECT_EQ(rule_at(builder.build(), 0x1000).kind, RuleKind::kNoTable);
}

TEST(EhFrame, RefusesATableOutsideOfItsModule) {
  const Bytes bytes = three_functions().build();
  LoadedModule module = EhFrameBuilder::module_of(bytes);
  const std::uint64_t pc = module.start + 0x1000;
  module.eh_frame_hdr = module.end;
  EXPECT_EQ(rule_from_tables(module, pc).kind, RuleKind::kNoTable);
  module.eh_frame_hdr = 0;
  EXPECT_EQ(rule_from_tables(module, pc).kind, RuleKind::kNoTable);
}

// Blocks of exactly the right size, so that the address sanitizer sees the first byte behind them.
TEST(EhFrame, ReadsNothingBehindTablesThatAreCutOff) {
  const Bytes whole = three_functions().build();

  for (std::size_t length = 0; length <= whole.size(); ++length) {
    const auto exact = std::make_unique<std::uint8_t[]>(length);
    std::copy_n(whole.begin(), length, exact.get());
    const auto begin = reinterpret_cast<std::uint64_t>(exact.get());
    const LoadedModule module = {begin, begin + length, begin};
    for (const std::uint64_t pc : {0x1000U, 0x1014U, 0x1040U}) {
      (void)rule_from_tables(module, begin + pc);
    }
  }
}

TEST(EhFrame, SurvivesEveryWrongByte) {
  const Bytes whole = three_functions().build();
  const auto exact = std::make_unique<std::uint8_t[]>(whole.size());
  std::copy(whole.begin(), whole.end(), exact.get());
  const auto begin = reinterpret_cast<std::uint64_t>(exact.get());
  const LoadedModule module = {begin, begin + whole.size(), begin};

  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (unsigned value = 0; value < 256; ++value) {
      exact[at] = static_cast<std::uint8_t>(value);
      (void)rule_from_tables(module, begin + 0x1014);
    }
    exact[at] = whole[at];
  }
}

}  // namespace
}  // namespace tidemark::tracer
