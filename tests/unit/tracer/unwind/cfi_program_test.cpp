// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/cfi.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tidemark::tracer {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kBegin = 0x1000;
const Bytes kUsualCommon = {0x0c, 7, 8, 0x80 | 16, 1};  // CFA = rsp + 8, return address at CFA - 8

CfiEntry entry_of(const Bytes& common, const Bytes& program) {
  const auto range = [](const Bytes& bytes) {
    const auto begin = reinterpret_cast<std::uint64_t>(bytes.data());
    return ByteRange{begin, begin + bytes.size()};
  };
  CfiEntry entry;
  entry.common_program = range(common);
  entry.program = range(program);
  entry.pc_begin = kBegin;
  entry.pc_end = kBegin + 0x1000000;
  return entry;
}

Rule rule_at(const Bytes& program, std::uint64_t offset) {
  return run_cfi(entry_of(kUsualCommon, program), kBegin + offset);
}

Rule from_sp(std::int64_t cfa) { return {RuleKind::kFromSp, BpRule::kSame, cfa, 0}; }

TEST(CfiProgram, FollowsTheUsualPrologueAndEpilogue) {
  // push %rbp; mov %rsp,%rbp; ...; leave; ret
  const Bytes program = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x50, 0xc6, 0x0c, 7, 8};

  EXPECT_EQ(rule_at(program, 0), from_sp(8));
  EXPECT_EQ(rule_at(program, 1), (Rule{RuleKind::kFromSp, BpRule::kAtCfa, 16, -16}));
  EXPECT_EQ(rule_at(program, 3), (Rule{RuleKind::kFromSp, BpRule::kAtCfa, 16, -16}));
  EXPECT_EQ(rule_at(program, 4), (Rule{RuleKind::kFromBp, BpRule::kAtCfa, 16, -16}));
  EXPECT_EQ(rule_at(program, 19), (Rule{RuleKind::kFromBp, BpRule::kAtCfa, 16, -16}));
  EXPECT_EQ(rule_at(program, 20), from_sp(8));
}

TEST(CfiProgram, RestoresARememberedState) {
  const Bytes program = {0x41, 0x0e, 64, 0x86, 3, 0x0a, 0x42, 0x0e, 8, 0xc6, 0x41, 0x0b};

  EXPECT_EQ(rule_at(program, 1), (Rule{RuleKind::kFromSp, BpRule::kAtCfa, 64, -24}));
  EXPECT_EQ(rule_at(program, 3), from_sp(8));
  EXPECT_EQ(rule_at(program, 4), (Rule{RuleKind::kFromSp, BpRule::kAtCfa, 64, -24}));
}

TEST(CfiProgram, AdvancesByOneTwoAndFourBytes) {
  const Bytes program = {0x02, 200,  0x0e, 16, 0x03, 0x34, 0x12, 0x0e,
                         24,   0x04, 0,    0,  1,    0,    0x0e, 32};

  EXPECT_EQ(rule_at(program, 199), from_sp(8));
  EXPECT_EQ(rule_at(program, 200), from_sp(16));
  EXPECT_EQ(rule_at(program, 200 + 0x1234 - 1), from_sp(16));
  EXPECT_EQ(rule_at(program, 200 + 0x1234), from_sp(24));
  EXPECT_EQ(rule_at(program, 200 + 0x1234 + 0x10000), from_sp(32));
}

TEST(CfiProgram, KnowsTheRareFormsOfTheSameRules) {
  EXPECT_EQ(rule_at({0x12, 7, 0x7e}, 0), from_sp(16)) << "def_cfa_sf, factor -2";
  EXPECT_EQ(rule_at({0x13, 0x7d}, 0), from_sp(24)) << "def_cfa_offset_sf, factor -3";
  const Rule saved = {RuleKind::kFromSp, BpRule::kAtCfa, 8, -16};
  EXPECT_EQ(rule_at({0x05, 6, 2}, 0), saved) << "offset_extended";
  EXPECT_EQ(rule_at({0x11, 6, 2}, 0), saved) << "offset_extended_sf";
  EXPECT_EQ(rule_at({0x86, 2, 0x06, 6}, 0), from_sp(8)) << "restore_extended";
  EXPECT_EQ(rule_at({0x86, 2, 0x08, 6}, 0), from_sp(8)) << "same_value";
  EXPECT_EQ(rule_at({0x2e, 0x90, 1, 0x0e, 16}, 0), from_sp(16)) << "GNU_args_size";
  EXPECT_EQ(rule_at({0x07, 6}, 0), (Rule{RuleKind::kFromSp, BpRule::kUndefined, 8, 0}));
  EXPECT_EQ(rule_at({0x09, 6, 3}, 0), (Rule{RuleKind::kFromSp, BpRule::kUndefined, 8, 0}));
  EXPECT_EQ(rule_at({0x0e, 0x88, 0x80, 0x04}, 0), from_sp(0x10008)) << "more than one byte";
}

TEST(CfiProgram, EndsTheStackWhereTheReturnAddressIsUndefined) {
  EXPECT_EQ(rule_at({0x07, 16}, 0), Rule{RuleKind::kEndOfStack});
}

TEST(CfiProgram, TellsTheFrameOfASignal) {
  CfiEntry entry = entry_of(kUsualCommon, {});
  entry.is_signal_frame = true;

  EXPECT_EQ(run_cfi(entry, kBegin), Rule{RuleKind::kSignalFrame});
}

TEST(CfiProgram, EvaluatesThePltExpressionForThePlaceInTheStub) {
  // rsp + 8 + ((rip & 15) >= 11 ? 8 : 0)
  const Bytes program = {0x0f, 0x0b, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};

  EXPECT_EQ(rule_at(program, 0), from_sp(8));
  EXPECT_EQ(rule_at(program, 10), from_sp(8));
  EXPECT_EQ(rule_at(program, 11), from_sp(16));
  EXPECT_EQ(rule_at(program, 15), from_sp(16));
  EXPECT_EQ(rule_at(program, 16), from_sp(8));
}

TEST(CfiProgram, FindsTheFrameOfAFunctionThatRealignsItsStack) {
  const Bytes program = {0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0};

  EXPECT_EQ(rule_at(program, 0), (Rule{RuleKind::kAtBp, BpRule::kAtBp, -8, 0}));
}

TEST(CfiProgram, RefusesWhatItDoesNotFollow) {
  const Rule unsupported = {RuleKind::kUnsupported};
  EXPECT_EQ(rule_at({0x0c, 10, 0}, 0), unsupported) << "CFA from r10";
  EXPECT_EQ(rule_at({0x90, 2}, 0), unsupported) << "return address elsewhere";
  EXPECT_EQ(rule_at({0x0b}, 0), unsupported) << "nothing was remembered";
  EXPECT_EQ(rule_at(Bytes(9, 0x0a), 0), unsupported) << "remembered too often";
  EXPECT_EQ(rule_at({0x3f}, 0), unsupported) << "unknown operation";
  EXPECT_EQ(rule_at({0x0f, 2, 0x77, 0}, 0), from_sp(0)) << "an expression that is complete";
  EXPECT_EQ(rule_at({0x0f, 3, 0x77, 0}, 0), unsupported) << "an expression that is cut off";
  EXPECT_EQ(rule_at({0x0f, 1, 0x22}, 0), unsupported) << "an expression without operands";
  EXPECT_EQ(rule_at({0x0f, 4, 0x77, 8, 0x06, 0x06}, 0), unsupported) << "a word near rsp";
  EXPECT_EQ(rule_at({0x0f, 0}, 0), unsupported) << "an empty expression";
  EXPECT_EQ(rule_at(Bytes{0x0f, 9, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30, 0x30}, 0),
            unsupported)
      << "an expression that is too deep";
}

TEST(CfiProgram, ReadsNothingBehindAProgramThatIsCutOff) {
  const Bytes whole = {0x02, 4,    0x0e, 0x90, 0x01, 0x86, 2,    0x0f, 3,    0x76, 0x78,
                       0x06, 0x10, 6,    2,    0x76, 0,    0x12, 7,    0x7e, 0x2e, 0x90,
                       1,    0x03, 1,    0x01, 0x04, 1,    1,    1,    1,    0x16, 3,
                       1,    0x30, 0x14, 3,    9,    0x09, 3,    4,    0x11, 6,    2};

  for (std::size_t length = 0; length <= whole.size(); ++length) {
    // A block of its own, so that the address sanitizer sees the first byte behind it.
    const auto exact = std::make_unique<std::uint8_t[]>(length);
    std::copy_n(whole.begin(), length, exact.get());
    CfiEntry entry = entry_of(kUsualCommon, {});
    entry.program = {reinterpret_cast<std::uint64_t>(exact.get()),
                     reinterpret_cast<std::uint64_t>(exact.get()) + length};
    (void)run_cfi(entry, ~std::uint64_t{0});
  }
}

}  // namespace
}  // namespace tidemark::tracer
