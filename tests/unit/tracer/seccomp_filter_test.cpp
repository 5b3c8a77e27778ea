// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/seccomp_filter.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/mman.h>

#include <array>
#include <cstring>

#include "profiler/tracer/unwind/stack_bounds.h"

namespace tidemark::tracer {
namespace {

// Allows one call; `other` is the action for all others.
std::array<sock_filter, 4> filter_with(std::uint32_t other) {
  return {{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 39, 0, 1),
           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), BPF_STMT(BPF_RET | BPF_K, other)}};
}
bool harms(std::uint32_t other) {
  const auto filter = filter_with(other);
  return may_harm(filter.data(), filter.size());
}

TEST(SeccompFilter, OneThatLetsCallsFailIsHarmless) {
  EXPECT_FALSE(harms(SECCOMP_RET_ERRNO | 1));
  EXPECT_FALSE(harms(SECCOMP_RET_LOG));
  EXPECT_FALSE(harms(SECCOMP_RET_ALLOW));
}

TEST(SeccompFilter, OneThatKillsSignalsWaitsOrPretendsMayHarm) {
  EXPECT_TRUE(harms(SECCOMP_RET_KILL_PROCESS));
  EXPECT_TRUE(harms(SECCOMP_RET_KILL_THREAD));
  EXPECT_TRUE(harms(SECCOMP_RET_TRAP));
  EXPECT_TRUE(harms(SECCOMP_RET_TRACE));
  EXPECT_TRUE(harms(SECCOMP_RET_USER_NOTIF));
  EXPECT_TRUE(harms(SECCOMP_RET_ERRNO));  // says that a call succeeded that was not made
}

TEST(SeccompFilter, AResultThatIsComputedMayHarm) {
  const sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                                BPF_STMT(BPF_RET | BPF_A, 0)};

  EXPECT_TRUE(may_harm(filter, 2));
}

TEST(SeccompFilter, WhatCannotBeReadIsLeftToTheKernel) {
  resolve_stack_end();
  auto filter = filter_with(SECCOMP_RET_KILL_PROCESS);
  const sock_fprog good = {4, filter.data()};
  const sock_fprog beyond = {4, reinterpret_cast<sock_filter*>(16)};

  EXPECT_TRUE(may_harm(&good));
  EXPECT_FALSE(may_harm(&beyond));
  EXPECT_FALSE(may_harm(nullptr));
  EXPECT_FALSE(may_harm(reinterpret_cast<const sock_fprog*>(16)));
}

TEST(SeccompFilter, AFilterThatEndsInUnreadableMemoryIsLeftToTheKernel) {
  constexpr std::size_t kPage = 4096;
  resolve_stack_end();
  auto* const pages = static_cast<char*>(
      ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(pages), MAP_FAILED);
  ASSERT_EQ(::mprotect(pages + kPage, kPage, PROT_NONE), 0);
  const auto filter = filter_with(SECCOMP_RET_KILL_PROCESS);
  auto* const at = reinterpret_cast<sock_filter*>(pages + kPage - sizeof(filter));
  std::memcpy(at, filter.data(), sizeof(filter));
  const sock_fprog fits = {4, at};
  const sock_fprog too_long = {5, at};

  EXPECT_TRUE(may_harm(&fits));
  EXPECT_FALSE(may_harm(&too_long));
  ::munmap(pages, 2 * kPage);
}

}  // namespace
}  // namespace tidemark::tracer
