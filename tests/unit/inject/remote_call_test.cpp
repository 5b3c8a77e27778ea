// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/remote_call.h"

#include <gtest/gtest.h>

namespace tidemark::inject {
namespace {

constexpr std::uint64_t kStack = 0x7f0000000000;
constexpr std::uint64_t kMiB = 1U << 20U;

std::vector<Mapping> one_mapping(const char* name) {
  return {{{kStack, kStack + kMiB}, true, false, 0, name}};
}

Registers at(std::uint64_t stack_pointer, std::uint64_t thread_data) {
  Registers registers = {};
  registers.rsp = stack_pointer;
  registers.fs_base = thread_data;
  return registers;
}

TEST(OwnStack, IsThatOfTheFirstThread) {
  EXPECT_EQ(own_stack(at(kStack + kMiB / 2, 1), one_mapping("[stack]")),
            (AddressRange{kStack, kStack + kMiB}));
}

TEST(OwnStack, EndsWithTheDataOfItsThread) {
  EXPECT_TRUE(own_stack(at(kStack + kMiB / 2, kStack + kMiB - 64), one_mapping("")));
}

TEST(OwnStack, IsNoneWithinOtherMemory) {
  EXPECT_FALSE(own_stack(at(kStack + kMiB / 2, kStack + 2 * kMiB), one_mapping("")));
  EXPECT_FALSE(own_stack(at(kStack + kMiB / 2, kStack + kMiB / 4), one_mapping("[heap]")));
  EXPECT_FALSE(own_stack(at(kStack - 8, kStack + kMiB - 64), one_mapping("")));
}

TEST(OwnStack, HasRoomForACall) {
  EXPECT_FALSE(own_stack(at(kStack + (64U << 10U), kStack + kMiB - 64), one_mapping("")));
  EXPECT_FALSE(own_stack(at(kStack + (16U << 10U), 1), one_mapping("[stack]")));
}

}  // namespace
}  // namespace tidemark::inject
