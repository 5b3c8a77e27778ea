// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/rule_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <utility>

#include "profiler/tracer/unwind/module_lookup.h"
#include "tests/unit/tracer/unwind/eh_frame_builder.h"

namespace tidemark::tracer {
namespace {

LoadedModule g_module;
int g_lookups = 0;

bool find_fake(std::uint64_t pc, LoadedModule& module) noexcept {
  ++g_lookups;
  module = g_module;
  return pc >= module.start + 0x1000 && pc < module.start + 0x9000;
}

// Two functions of a module that exists only here.
class RuleCache : public testing::Test {
 protected:
  RuleCache() {
    tests::EhFrameBuilder builder;
    builder.functions = {{0x1000, 0x1000, {0x0e, 16}}, {0x2000, 0x4000, {0x0e, 24, 0x86, 2}}};
    bytes_ = builder.build();
    g_module = tests::EhFrameBuilder::module_of(bytes_);
    g_lookups = 0;
    forget_rules();
    set_module_finder(find_fake);
  }
  ~RuleCache() override {
    set_module_finder(nullptr);
    forget_rules();
  }

  std::uint64_t at(std::uint64_t offset) const { return g_module.start + offset; }

 private:
  tests::Bytes bytes_;
};

TEST(Rule, IsTheSameAfterPackingAndUnpacking) {
  for (const Rule rule : {Rule{RuleKind::kFromSp, BpRule::kSame, 8, 0},
                          Rule{RuleKind::kFromBp, BpRule::kAtCfa, 16, -16},
                          Rule{RuleKind::kFromSp, BpRule::kAtCfa, 8 * 32767, -8 * 1024},
                          Rule{RuleKind::kAtBp, BpRule::kAtBp, -8, 0},
                          Rule{RuleKind::kAtBp, BpRule::kUndefined, -8 * 32768, 8 * 1023},
                          Rule{RuleKind::kEndOfStack}, Rule{RuleKind::kSignalFrame},
                          Rule{RuleKind::kUnsupported}, Rule{RuleKind::kNoTable}}) {
    ASSERT_NE(pack_rule(rule), 0U);
    EXPECT_EQ(unpack_rule(pack_rule(rule)), rule);
  }
}

TEST(Rule, IsNotPackedWhenItDoesNotFit) {
  EXPECT_EQ(pack_rule({RuleKind::kNone}), 0U);
  EXPECT_EQ(pack_rule({RuleKind::kFromSp, BpRule::kSame, 8 * 32768, 0}), 0U);
  EXPECT_EQ(pack_rule({RuleKind::kFromSp, BpRule::kSame, 12, 0}), 0U);
  EXPECT_EQ(pack_rule({RuleKind::kFromSp, BpRule::kAtCfa, 16, -8 * 1025}), 0U);
  EXPECT_EQ(pack_rule({RuleKind::kFromSp, BpRule::kAtCfa, 16, -8}), 0U) << "the return address";
}

TEST(Rule, IsPlainWhenAllThatItReadsIsBelowTheCfa) {
  EXPECT_TRUE(is_plain_rule(pack_rule({RuleKind::kFromSp, BpRule::kSame, 8, 0})));
  EXPECT_TRUE(is_plain_rule(pack_rule({RuleKind::kFromBp, BpRule::kAtCfa, 16, -16})));
  EXPECT_FALSE(is_plain_rule(pack_rule({RuleKind::kFromBp, BpRule::kAtBp, 16, 0})));
  EXPECT_FALSE(is_plain_rule(pack_rule({RuleKind::kFromSp, BpRule::kUndefined, 16, 0})));
  EXPECT_FALSE(is_plain_rule(pack_rule({RuleKind::kAtBp, BpRule::kSame, -8, 0})));
  EXPECT_FALSE(is_plain_rule(0));
}

TEST(RuleKey, IsNeverTheSameForTwoAddresses) {
  std::mt19937_64 random(7);
  std::set<std::uint64_t> addresses;
  std::set<std::pair<std::size_t, std::uint64_t>> keys;
  for (int i = 0; i < 40'000; ++i) {
    const std::uint64_t pc =
        i % 2 == 0 ? random() & kAddressMask : 0x7f0000000000 + random() % 99999;
    const RuleKey key = rule_key(pc);
    addresses.insert(pc);
    keys.emplace(key.slot / 2, key.tag);  // a rule may be in either slot of a pair
  }

  EXPECT_EQ(keys.size(), addresses.size());
}

TEST_F(RuleCache, UsesTheInstructionOfTheCallNotTheOneBehindIt) {
  EXPECT_EQ(return_rule(at(0x2000)).cfa_offset, 16);
  EXPECT_EQ(instruction_rule(at(0x2000)).cfa_offset, 24);
}

TEST_F(RuleCache, LooksOnlyOnceForAnAddress) {
  const Rule first = return_rule(at(0x2345));
  const Rule second = return_rule(at(0x2345));

  EXPECT_EQ(first, (Rule{RuleKind::kFromSp, BpRule::kAtCfa, 24, -16}));
  EXPECT_EQ(second, first);
  EXPECT_EQ(g_lookups, 1);
}

TEST_F(RuleCache, LooksAgainAfterAModuleWasUnloaded) {
  return_rule(at(0x2345));
  const std::uint32_t generation = rule_generation();

  forget_rules();
  return_rule(at(0x2345));

  EXPECT_EQ(g_lookups, 2);
  EXPECT_NE(rule_generation(), generation);
}

TEST_F(RuleCache, KeepsNothingAboutCodeOutsideOfModules) {
  EXPECT_EQ(return_rule(at(0x10000)).kind, RuleKind::kNone);
  EXPECT_EQ(return_rule(at(0x10000)).kind, RuleKind::kNone);
  EXPECT_EQ(g_lookups, 2);
}

TEST_F(RuleCache, NeverMixesUpAddresses) {
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t offset = 0x1001; offset < 0x6000; ++offset) {
      ASSERT_EQ(return_rule(at(offset)).cfa_offset, offset <= 0x2000 ? 16 : 24) << offset;
    }
  }
}

}  // namespace
}  // namespace tidemark::tracer
