// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/unwind.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "profiler/tracer/unwind/rule_cache.h"
#include "tests/unit/tracer/unwind/call_chains.h"
#include "tests/unit/tracer/unwind/unwind_hooks.h"

namespace tidemark::tracer {
namespace {

using tests::expect_noted_stack;
using tests::g_last_pcs;
using tests::g_last_trace;
using tests::hook_fresh;
using tests::Pcs;

class Unwind : public testing::Test {
 protected:
  Unwind() {
    if (!start_unwinder()) {
      skip_ = true;
    }
  }
  void SetUp() override {
    if (skip_) {
      GTEST_SKIP() << "glibc before 2.35 has no _dl_find_object";
    }
  }

 private:
  bool skip_ = false;
};

TEST_F(Unwind, KnowsEveryCallerOfOptimisedCode) {
  tests::call_plain(0, hook_fresh);
  expect_noted_stack(1);
  tests::call_plain(30, hook_fresh);
  expect_noted_stack(31);
}

TEST_F(Unwind, EndsAtTheOutermostFunction) {
  tests::call_plain(3, hook_fresh);

  EXPECT_TRUE(g_last_trace.end_is_final);
  EXPECT_FALSE(g_last_trace.truncated);
}

TEST_F(Unwind, FollowsFramesOfEverySize) {
  for (const int bytes : {1, 100, 5000, 70'000}) {
    tests::call_with_alloca(bytes, hook_fresh);
    expect_noted_stack(1);
    tests::call_realigned(bytes, hook_fresh);
    expect_noted_stack(1);
  }
  tests::call_with_large_frame(hook_fresh);
  expect_noted_stack(1);
}

TEST_F(Unwind, KnowsTheCallerWhoseCallIsItsLastInstruction) {
  tests::call_noreturn(hook_fresh);
  expect_noted_stack(2);
}

TEST_F(Unwind, LeavesErrnoAlone) {
  errno = 99;
  forget_rules();
  tests::call_plain(3, hook_fresh);
  EXPECT_EQ(errno, 99);
}

TEST_F(Unwind, SaysWhenAStackIsDeeperThanATrace) {
  tests::call_plain(300, hook_fresh);

  EXPECT_TRUE(g_last_trace.truncated);
  EXPECT_EQ(g_last_trace.depth, kMaxFrames);
  expect_noted_stack(kMaxFrames - 1);
}

TEST_F(Unwind, WalksTheStackOfAThread) {
  std::thread thread([] {
    tests::call_plain(5, hook_fresh);
    expect_noted_stack(6);
    EXPECT_TRUE(g_last_trace.end_is_final);
  });
  thread.join();
}

ucontext_t g_main_context;
ucontext_t g_other_context;

TEST_F(Unwind, WalksTheStackOfAContext) {
  std::vector<char> stack(256 * 1024);
  getcontext(&g_other_context);
  g_other_context.uc_stack = {stack.data(), 0, stack.size()};
  g_other_context.uc_link = &g_main_context;
  makecontext(
      &g_other_context, [] { tests::call_plain(5, hook_fresh); }, 0);

  swapcontext(&g_main_context, &g_other_context);

  expect_noted_stack(6);
}

// Machine code in memory that no module owns.
class Jit {
 public:
  explicit Jit(const std::vector<std::uint8_t>& code)
      : code_(mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0)) {
    std::memcpy(code_, code.data(), code.size());
  }
  ~Jit() { munmap(code_, 4096); }
  Jit(const Jit&) = delete;
  Jit& operator=(const Jit&) = delete;
  const void* code() const { return code_; }

 private:
  void* code_;
};

TEST_F(Unwind, FollowsFramePointersThroughCodeWithoutTables) {
  // push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
  const Jit jit({0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3});

  tests::call_through_jit(jit.code(), hook_fresh);

  ASSERT_GT(g_last_trace.depth, 3U);
  EXPECT_EQ(g_last_trace.pc[0], reinterpret_cast<std::uint64_t>(jit.code()) + 6);
  EXPECT_EQ(g_last_trace.pc[2], tests::g_last_noted.at(0));
  EXPECT_TRUE(g_last_trace.end_is_final);
}

TEST_F(Unwind, EndsAtCodeWithoutTablesAndFramePointers) {
  // push %rbp; mov $1,%ebp; call *%rdi; pop %rbp; ret
  const Jit jit({0x55, 0xbd, 1, 0, 0, 0, 0xff, 0xd7, 0x5d, 0xc3});

  tests::call_through_jit(jit.code(), hook_fresh);

  EXPECT_EQ(g_last_trace.depth, 1U);
  EXPECT_FALSE(g_last_trace.end_is_final);
}

TEST_F(Unwind, SurvivesGarbageForAStack) {
  const std::size_t page = 4096;
  auto* const begin = static_cast<char*>(
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(begin + page, page, PROT_NONE);
  auto* const words = reinterpret_cast<std::uint64_t*>(begin);
  const auto stack = reinterpret_cast<std::uint64_t>(begin);
  tests::call_plain(20, hook_fresh);
  const Pcs real(g_last_trace.pc, g_last_trace.pc + g_last_trace.depth);
  std::mt19937_64 random(3);
  StackTrace trace;

  for (int round = 0; round < 8'000; ++round) {
    for (std::size_t i = 0; i < page / 8; ++i) {
      const std::uint64_t kind = random() % 4;
      words[i] = kind == 0   ? real[random() % real.size()]
                 : kind == 1 ? stack + random() % (page + 64)
                 : kind == 2 ? random()
                             : stack + random() % (page / 8) * 8;
    }
    const std::uint64_t sp = stack + random() % (page / 8) * 8;
    unwind({real[random() % real.size()], sp, words[random() % 64]}, {stack + page}, trace);
    ASSERT_LE(trace.depth, kMaxFrames);
    ASSERT_GE(trace.depth, 1U);
  }
  munmap(begin, 2 * page);
}

TEST_F(Unwind, LoadsNothingWithoutBounds) {
  StackTrace trace;
  for (const std::uint64_t sp : {0ULL, 8ULL, 7ULL, ~0ULL, ~7ULL}) {
    unwind({reinterpret_cast<std::uint64_t>(&tests::call_plain) + 20, sp, 16}, {sp}, trace);
    EXPECT_EQ(trace.depth, 1U);
  }
}

TEST_F(Unwind, GivesTheSameTraceWithAndWithoutReuse) {
  std::mt19937 random(11);
  tests::g_compared = 0;

  for (int round = 0; round < 80; ++round) {
    tests::wander(random, static_cast<int>(random() % 60), tests::hook_compare_reuse);
    if (round % 20 == 0) {
      forget_rules();
    }
  }

  EXPECT_GT(tests::g_compared, 1000);
  EXPECT_EQ(tests::g_differences, 0);
}

TEST_F(Unwind, ReusesThroughFramesThatMustBeWalkedAgain) {
  tests::g_compared = 0;
  for (int round = 0; round < 20; ++round) {
    tests::call_realigned(round * 40 + 1, tests::hook_compare_reuse);
    tests::call_with_large_frame(tests::hook_compare_reuse);
    tests::call_plain(200, tests::hook_compare_reuse);
    tests::call_plain(round, [] { tests::call_realigned(8, tests::hook_compare_reuse); });
  }

  EXPECT_EQ(tests::g_compared, 80);
  EXPECT_EQ(tests::g_differences, 0);
}

TEST_F(Unwind, IsRightWhileOtherThreadsForgetRules) {
  std::atomic<bool> done = false;
  tests::g_compared = 0;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 3; ++seed) {
    threads.emplace_back([seed] {
      std::mt19937 random(seed);
      for (int round = 0; round < 30; ++round) {
        tests::wander(random, static_cast<int>(random() % 40), tests::hook_compare_reuse);
      }
    });
  }
  std::thread forgetful([&] {
    while (!done) {
      forget_rules();
    }
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  done = true;
  forgetful.join();

  EXPECT_GT(tests::g_compared, 500);
  EXPECT_EQ(tests::g_differences, 0);
}

std::map<Pcs, std::uint64_t> g_hashes;
std::map<std::uint64_t, Pcs> g_stacks;

TEST_F(Unwind, HashesDifferForDifferentStacksOnly) {
  std::mt19937 random(5);
  const auto note_all_suffixes = [] {
    hook_fresh();
    Pcs pcs(g_last_trace.pc, g_last_trace.pc + g_last_trace.depth);
    for (std::size_t i = 0; i < g_last_trace.depth; ++i) {
      const std::uint64_t hash = g_last_trace.hash[i];
      ASSERT_NE(hash, 0U);
      ASSERT_EQ(g_hashes.try_emplace(pcs, hash).first->second, hash);
      ASSERT_EQ(g_stacks.try_emplace(hash, pcs).first->second, pcs);
      pcs.erase(pcs.begin());
    }
  };

  for (int round = 0; round < 30; ++round) {
    tests::wander(random, static_cast<int>(random() % 30), note_all_suffixes);
  }

  EXPECT_GT(g_hashes.size(), 100U);
}

TEST(StackTraceTest, TakesFramesFromElsewhere) {
  Pcs pcs(kMaxFrames + 5);
  for (std::size_t i = 0; i < pcs.size(); ++i) {
    pcs[i] = 1000 + i;
  }
  StackTrace trace;

  assign_frames(trace, pcs.data(), 3);
  EXPECT_EQ(Pcs(trace.pc, trace.pc + trace.depth), (Pcs{1000, 1001, 1002}));
  EXPECT_FALSE(trace.truncated);
  const std::uint64_t hash_of_last = trace.hash[2];
  assign_frames(trace, pcs.data() + 2, 1);
  EXPECT_EQ(trace.hash[0], hash_of_last);
  assign_frames(trace, pcs.data(), pcs.size());
  EXPECT_EQ(trace.depth, kMaxFrames);
  EXPECT_TRUE(trace.truncated);
  EXPECT_EQ(trace.pc[0], 1000U);
}

}  // namespace
}  // namespace tidemark::tracer
