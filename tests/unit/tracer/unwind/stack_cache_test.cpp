// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/stack_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "profiler/tracer/unwind/rule_cache.h"
#include "profiler/tracer/unwind/unwind.h"
#include "tests/unit/tracer/unwind/call_chains.h"

namespace tidemark::tracer {
namespace {

using Pcs = std::vector<std::uint64_t>;

// Asks the cache for the stack of its caller, walks it again, and compares.
struct Asking {
  std::unique_ptr<StackCache> cache = std::make_unique<StackCache>();
  std::uint64_t context = 1;
  ByteRange unsure;
  std::mutex mutex;
  std::map<Pcs, std::uint32_t> numbers;
  std::atomic<int> asked = 0;
  std::atomic<int> found = 0;
  std::atomic<int> mistaken = 0;
};
Asking* g_asking = nullptr;

void hook() {
  const Registers registers = capture_registers();
  const StackBounds bounds = stack_bounds(registers.sp);
  static thread_local StackTrace trace;
  trace.reusable = false;
  unwind(registers, bounds, trace);
  const Pcs pcs(trace.pc, trace.pc + trace.depth);
  std::uint32_t right = 0;
  {
    const std::lock_guard lock(g_asking->mutex);
    const auto next = static_cast<std::uint32_t>(g_asking->numbers.size());
    right = g_asking->numbers.try_emplace(pcs, next).first->second;
  }
  std::uint64_t number = 0;
  ++g_asking->asked;
  if (g_asking->cache->find(registers, bounds, g_asking->context, g_asking->unsure, number)) {
    ++g_asking->found;
    g_asking->mistaken += number != right ? 1 : 0;
  } else {
    g_asking->cache->add(registers, bounds, g_asking->context, trace, right);
  }
}

class StackCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!start_unwinder()) {
      GTEST_SKIP() << "glibc before 2.35 has no _dl_find_object";
    }
    g_asking = &asking_;
    asking_.cache->enable();
  }
  // From one place, so that the frames further out are the same.
  [[gnu::noinline]] int found_in(void (*call)()) {
    const int before = asking_.found;
    call();
    return asking_.found - before;
  }

  Asking asking_;
};

void call_deep() { tests::call_plain(30, hook); }
void call_flat() { tests::call_plain(3, hook); }
void call_of_varying_size() {
  for (const int bytes : {16, 4096, 16, 4096}) {
    tests::call_with_alloca(bytes, hook);
  }
}

TEST_F(StackCacheTest, FindsAStackThatWasAdded) {
  EXPECT_EQ(asking_.cache->bytes(), 0U);
  for (int i = 0; i < 4; ++i) {
    found_in(call_deep);
    found_in(call_flat);
  }

  EXPECT_EQ(asking_.found, 6);
  EXPECT_EQ(asking_.mistaken, 0);
  EXPECT_GT(asking_.cache->bytes(), 0U);
}

TEST_F(StackCacheTest, HoldsNothingWithoutMemory) {
  asking_.cache = std::make_unique<StackCache>();

  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(found_in(call_deep), 0);
  }

  EXPECT_FALSE(asking_.cache->is_enabled());
  EXPECT_EQ(asking_.cache->bytes(), 0U);
}

TEST_F(StackCacheTest, FollowsFramePointers) {
  for (int i = 0; i < 4; ++i) {
    found_in(call_of_varying_size);
  }

  EXPECT_GT(asking_.found, 8);
  EXPECT_EQ(asking_.mistaken, 0);
}

TEST_F(StackCacheTest, AnotherContextIsAnotherStack) {
  for (int i = 0; i < 2; ++i) {
    asking_.context = 2 + static_cast<std::uint64_t>(i);
    EXPECT_EQ(found_in(call_deep), 0);
  }
}

TEST_F(StackCacheTest, IsEmptyAfterAModuleWasUnloaded) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(found_in(call_deep), 0) << i;
    forget_rules();
  }
}

TEST_F(StackCacheTest, DoesNotTrustFramesWhereCodeMayHaveChanged) {
  for (int i = 0; i < 3; ++i) {
    asking_.unsure = i == 1 ? ByteRange{reinterpret_cast<std::uint64_t>(&call_deep),
                                        reinterpret_cast<std::uint64_t>(&call_deep) + 256}
                            : ByteRange{};
    EXPECT_EQ(found_in(call_deep), i == 2 ? 1 : 0) << i;
  }
}

TEST_F(StackCacheTest, NeverTakesOneStackForAnother) {
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    tests::wander(random, 12, hook);
  }

  EXPECT_EQ(asking_.mistaken, 0);
  EXPECT_GT(asking_.found, asking_.asked / 100);
  EXPECT_GT(asking_.numbers.size(), 100U);
}

TEST_F(StackCacheTest, ThreadsShareItWithoutMistakes) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::mt19937 random(t % 2);  // two and two wander alike
      for (int i = 0; i < 1000; ++i) {
        tests::wander(random, 10, hook);
        call_deep();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  EXPECT_EQ(asking_.mistaken, 0);
  EXPECT_GT(asking_.found, 1000);
}

}  // namespace
}  // namespace tidemark::tracer
