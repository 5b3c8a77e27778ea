// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <cerrno>
#include <csetjmp>
#include <thread>

#include "profiler/tracer/scratch_pool.h"
#include "profiler/tracer/sys.h"
#include "profiler/tracer/thread_state.h"
#include "profiler/tracer/unwind/stack_bounds.h"

namespace tidemark::tracer {
namespace {

[[gnu::noinline]] bool enters_below() {
  const HookScope inner;
  return static_cast<bool>(inner);
}

TEST(HookScope, IsOutermostOnceAndAgainAfterItsEnd) {
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

TEST(HookScope, ThreadsAreIndependent) {
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

TEST(HookScope, OneThatWasLeftByLongjmpNoLongerCounts) {
  resolve_stack_end();
  if (setjmp(g_back) == 0) {
    leave_a_hook(5);
  }

  EXPECT_TRUE(enters_below());
  EXPECT_TRUE(enters_below());
  t_thread.hook_frame = 0;
}

// Enters a hook on a stack of its own, which lies further out than the hook under way: in a buffer
// of a caller, or above the stack of the thread.
bool g_first_on_other_stack = true;
void enter_on_other_stack(int /*signal*/) { g_first_on_other_stack = enters_below(); }

[[gnu::noinline]] void interrupt_a_hook_with(void* stack, std::size_t bytes) {
  resolve_stack_end();
  stack_t other = {};
  other.ss_sp = stack;
  other.ss_size = bytes;
  ASSERT_EQ(sigaltstack(&other, nullptr), 0);
  struct sigaction action = {};
  action.sa_handler = enter_on_other_stack;
  action.sa_flags = SA_ONSTACK;
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  g_first_on_other_stack = true;

  {
    const HookScope scope;
    const std::uint64_t frame = t_thread.hook_frame;
    ASSERT_LT(frame, reinterpret_cast<std::uint64_t>(stack));
    t_thread.orphaned = true;
    ASSERT_EQ(pthread_kill(pthread_self(), SIGUSR1), 0);

    EXPECT_FALSE(g_first_on_other_stack);
    EXPECT_EQ(t_thread.hook_frame, frame);
    EXPECT_TRUE(t_thread.orphaned);
  }

  EXPECT_FALSE(t_thread.orphaned);
  other.ss_flags = SS_DISABLE;
  sigaltstack(&other, nullptr);
  signal(SIGUSR1, SIG_DFL);
}

TEST(HookScope, OneOnAnAlternateStackFurtherOutIsInside) {
  alignas(16) char stack[64U << 10U];

  interrupt_a_hook_with(stack, sizeof(stack));
}

TEST(HookScope, OneOnAnAlternateStackAboveThatOfItsThreadIsInside) {
  constexpr std::size_t kBytes = 1U << 20U;
  void* const low =
      mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const high = static_cast<char*>(low) + kBytes;
  pthread_attr_t where;
  pthread_attr_init(&where);
  ASSERT_EQ(pthread_attr_setstack(&where, low, kBytes), 0);
  pthread_t thread = 0;

  ASSERT_EQ(pthread_create(
                &thread, &where,
                [](void* stack) -> void* {
                  interrupt_a_hook_with(stack, kBytes);
                  return nullptr;
                },
                high),
            0);

  pthread_join(thread, nullptr);
  pthread_attr_destroy(&where);
  munmap(low, 2 * kBytes);
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

TEST(ScratchPool, ThreadsShareTheFirstSlotsWhereThereIsNoMemoryForMore) {
  const auto pool = std::make_unique<ScratchPool>();
  const std::uint32_t before = t_thread.scratch;
  t_thread.scratch = 1;
  ScratchPool::give_back(*pool->claim());
  sys::g_calls_stopped.fetch_add(sys::kOwnFilter);

  std::uint32_t claimed = 0;
  for (std::uint32_t slot = 0; slot < 512; slot += 8) {  // of other threads
    t_thread.scratch = slot + 1;
    if (Scratch* const scratch = pool->claim()) {
      ++claimed;
      ScratchPool::give_back(*scratch);
    }
  }

  sys::g_calls_stopped.fetch_sub(sys::kOwnFilter);
  t_thread.scratch = before;
  EXPECT_EQ(claimed, 64U);
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
