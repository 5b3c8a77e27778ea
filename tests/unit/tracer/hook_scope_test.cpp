// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>
#include <csetjmp>
#include <thread>

#include "profiler/tracer/scratch_pool.h"
#include "profiler/tracer/thread_state.h"

namespace tidemark::tracer {
namespace {

[[gnu::noinline]] bool enters_below() {
  const HookScope inner;
  return static_cast<bool>(inner);
}

TEST(HookScope, IsFirstOnceAndAgainAfterItsEnd) {
  {
    const HookScope outer;
    EXPECT_TRUE(outer);
    EXPECT_FALSE(enters_below());
    EXPECT_FALSE(enters_below());
  }
  EXPECT_TRUE(enters_below());
}

TEST(HookScope, KeepsErrno) {
  errno = ENOENT;
  {
    const HookScope scope;
    errno = EIO;
  }
  EXPECT_EQ(errno, ENOENT);
}

TEST(HookScope, AnInnerOneKeepsErrnoToo) {
  const HookScope outer;
  errno = EAGAIN;
  {
    const HookScope inner;
    errno = EIO;
  }
  EXPECT_EQ(errno, EAGAIN);
}

TEST(HookScope, ThreadsDoNotHinderEachOther) {
  const HookScope scope;
  bool first = false;

  std::thread([&] { first = enters_below(); }).join();

  EXPECT_TRUE(first);
}

std::jmp_buf g_back;

[[gnu::noinline]] void leave_a_hook(int depth) {
  char room[256];
  room[0] = static_cast<char>(depth);
  asm volatile("" : : "r"(room) : "memory");
  if (depth == 0) {
    const HookScope scope;
    std::longjmp(g_back, 1);
  }
  if (depth > 0) {  // always; the compiler is not to know
    leave_a_hook(depth - 1);
  }
}

TEST(HookScope, OneThatWasLeftByLongjmpIsForgotten) {
  if (setjmp(g_back) == 0) {
    leave_a_hook(5);
  }

  EXPECT_TRUE(enters_below());
  EXPECT_TRUE(enters_below());
  t_thread.hook_frame = 0;
}

TEST(ScratchPool, GivesASlotToEachWhoHasOne) {
  const auto pool = std::make_unique<ScratchPool>();

  Scratch* const one = pool->claim();
  Scratch* const other = pool->claim();  // a signal handler on a stack of its own

  ASSERT_NE(one, nullptr);
  ASSERT_NE(other, nullptr);
  EXPECT_NE(one, other);
}

TEST(ScratchPool, TakesBackWhatWasClaimedInsideAndThenOutside) {
  const auto pool = std::make_unique<ScratchPool>();

  for (int i = 0; i < 1000; ++i) {
    Scratch* const outer = pool->claim();
    Scratch* const inner = pool->claim();
    ASSERT_NE(outer, nullptr) << i;
    ASSERT_NE(inner, nullptr) << i;
    pool->give_back(*inner);
    pool->give_back(*outer);
  }
}

TEST(ScratchPool, HasNoneLeftWhenAllNearAreTaken) {
  const auto pool = std::make_unique<ScratchPool>();
  int claimed = 0;
  while (claimed < 1000 && pool->claim() != nullptr) {
    ++claimed;
  }

  EXPECT_GE(claimed, 8);
  EXPECT_LE(claimed, 512);
  pool->clear();
  EXPECT_NE(pool->claim(), nullptr);
}

}  // namespace
}  // namespace tidemark::tracer
