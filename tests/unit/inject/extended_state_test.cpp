// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/extended_state.h"

#include <cstring>

#include <gtest/gtest.h>

namespace tidemark::inject {
namespace {

constexpr std::size_t kAllBytes = 11008;  // of a processor with AMX

// As such a processor has them: AVX, three parts of AVX-512, the tiles of AMX.
StateParts parts_with_amx() {
  StateParts parts = {};
  parts[2] = {576, 256};
  parts[5] = {1088, 64};
  parts[6] = {1152, 512};
  parts[7] = {1664, 1024};
  parts[17] = {2752, 64};
  parts[18] = {2816, 8192};
  return parts;
}

std::vector<char> state_that_uses(std::uint64_t in_use) {
  std::vector<char> state(kAllBytes, 'x');
  const std::uint64_t all = 0x600e7;
  std::memcpy(state.data() + 464, &all, sizeof(all));
  std::memcpy(state.data() + 512, &in_use, sizeof(in_use));
  return state;
}

template <typename T>
T read_at(const std::vector<char>& state, std::size_t offset) {
  T value = {};
  std::memcpy(&value, state.data() + offset, sizeof(value));
  return value;
}

TEST(ExtendedState, EndsBehindTheLastPartInUse) {
  const auto frame = for_signal_frame(state_that_uses(0b111), parts_with_amx());

  ASSERT_EQ(frame.size(), 576U + 256U + 4U);
  EXPECT_EQ(read_at<std::uint32_t>(frame, 464), 0x46505853U);
  EXPECT_EQ(read_at<std::uint32_t>(frame, 468), 836U);
  EXPECT_EQ(read_at<std::uint64_t>(frame, 472), 0x600e7U);
  EXPECT_EQ(read_at<std::uint32_t>(frame, 480), 832U);
  EXPECT_EQ(read_at<std::uint32_t>(frame, 832), 0x46505845U);
  EXPECT_EQ(frame[576], 'x');
}

TEST(ExtendedState, KeepsTheTilesOfAThreadThatUsesThem) {
  const auto frame = for_signal_frame(state_that_uses(std::uint64_t{3} << 17U), parts_with_amx());

  EXPECT_EQ(frame.size(), kAllBytes + 4);
}

TEST(ExtendedState, HasAlwaysTheHeader) {
  EXPECT_EQ(for_signal_frame(state_that_uses(1), parts_with_amx()).size(), 580U);
  EXPECT_TRUE(for_signal_frame(std::vector<char>(512), parts_with_amx()).empty());
}

TEST(ExtendedState, KnowsThePartsOfThisProcessor) {
  if (__builtin_cpu_supports("avx") == 0) {
    GTEST_SKIP() << "the processor has no AVX";
  }
  EXPECT_EQ(state_parts()[2].offset, 576U);
  EXPECT_EQ(state_parts()[2].bytes, 256U);
}

}  // namespace
}  // namespace tidemark::inject
