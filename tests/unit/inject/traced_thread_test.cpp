// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/traced_thread.h"

#include <sys/syscall.h>

#include <cerrno>

#include <gtest/gtest.h>

namespace tidemark::inject {
namespace {

Registers in_call(std::int64_t number, std::int64_t result) {
  Registers registers = {};
  registers.rip = 1000;
  registers.orig_rax = static_cast<std::uint64_t>(number);
  registers.rax = static_cast<std::uint64_t>(result);
  return registers;
}

TEST(RegistersToResume, MakesAnInterruptedCallAgain) {
  for (const std::int64_t result : {-512, -513, -514, -516, -EINTR}) {
    const Registers resumed = registers_to_resume(in_call(232, result));

    EXPECT_EQ(resumed.rip, 998U) << result;
    EXPECT_EQ(resumed.rax, 232U) << result;
    EXPECT_EQ(static_cast<std::int64_t>(resumed.orig_rax), -1) << result;
  }
}

TEST(RegistersToResume, ClosesNoDescriptorTwice) {
  EXPECT_EQ(registers_to_resume(in_call(SYS_close, -EINTR)).rip, 1000U);
}

TEST(RegistersToResume, LeavesWhatWasNoCallOrHasReturned) {
  EXPECT_EQ(registers_to_resume(in_call(-1, -512)).rip, 1000U);
  EXPECT_EQ(registers_to_resume(in_call(0, 17)).rip, 1000U);
  EXPECT_EQ(registers_to_resume(in_call(0, 17)).rax, 17U);
}

}  // namespace
}  // namespace tidemark::inject
