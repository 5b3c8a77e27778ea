// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/stack_bounds.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <thread>

#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {
namespace {

constexpr std::size_t kPage = 4096;

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// Two hundred pages, of which the last may not be read.
class GuardedPages {
 public:
  GuardedPages()
      : begin_(mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0)) {
    mprotect(static_cast<char*>(begin_) + (kPages - 1) * kPage, kPage, PROT_NONE);
  }
  ~GuardedPages() { munmap(begin_, kPages * kPage); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;
  std::uint64_t begin() const { return address_of(begin_); }
  std::uint64_t guard() const { return begin() + (kPages - 1) * kPage; }

 private:
  static constexpr std::size_t kPages = 200;
  void* begin_;
};

class StackBoundsTest : public testing::Test {
 protected:
  StackBoundsTest() { resolve_stack_end(); }
};

TEST_F(StackBoundsTest, TellsWhatCanBeRead) {
  const GuardedPages pages;
  const int local = 0;

  errno = 77;
  EXPECT_TRUE(is_readable(address_of(&local)));
  EXPECT_TRUE(is_readable(pages.begin()));
  EXPECT_FALSE(is_readable(pages.guard()));
  EXPECT_FALSE(is_readable(0));
  EXPECT_FALSE(is_readable(0xffff800000000000));
  EXPECT_EQ(errno, 77);
}

TEST_F(StackBoundsTest, ReachToTheStartOfTheMainThread) {
  const int local = 0;
  const auto* const environment = reinterpret_cast<const char*>(environ[0]);

  const StackBounds bounds = stack_bounds(address_of(&local) & ~7ULL);

  EXPECT_GT(bounds.high, address_of(__builtin_frame_address(0)));
  EXPECT_LE(bounds.high, address_of(environment)) << "the kernel puts the environment above it";
}

TEST_F(StackBoundsTest, ReachToTheTopOfAThread) {
  StackBounds shallow;
  StackBounds deep;
  std::uint64_t frame = 0;
  std::thread thread([&] {
    frame = address_of(__builtin_frame_address(0));
    shallow = stack_bounds(frame);
    volatile char large[100'000];
    large[0] = 0;
    deep = stack_bounds(address_of(const_cast<char*>(large)) & ~7ULL);
  });
  thread.join();

  EXPECT_GT(shallow.high, frame);
  EXPECT_LT(shallow.high - frame, 64 * 1024U);
  EXPECT_EQ(deep.high, shallow.high);
}

// The end of what can be reached from there, page by page.
std::uint64_t reached(StackBounds bounds) {
  while (extend_bounds(bounds, bounds.high)) {
  }
  return bounds.high;
}

TEST_F(StackBoundsTest, EndBeforeAPageThatCannotBeRead) {
  const GuardedPages pages;

  EXPECT_EQ(reached(stack_bounds(pages.guard() - 64)), pages.guard());
  EXPECT_EQ(reached(stack_bounds(pages.guard() - 3 * kPage)), pages.guard());
  EXPECT_EQ(reached(stack_bounds(pages.guard())), pages.guard()) << "nothing at all";
  EXPECT_EQ(reached(bounds_of_interrupted(pages.guard() + 64)), pages.guard() + 64) << "nor here";
}

TEST_F(StackBoundsTest, OfOtherStacksAreShort) {
  const GuardedPages pages;

  EXPECT_EQ(reached(stack_bounds(pages.begin() + 64)), pages.begin() + 64 * 1024);
}

TEST_F(StackBoundsTest, AreNotExtendedBeyondAStackThatIsKnown) {
  const int local = 0;

  const StackBounds bounds = stack_bounds(address_of(&local) & ~7ULL);

  EXPECT_EQ(reached(bounds), bounds.high);
}

TEST_F(StackBoundsTest, OfOtherStacksHoldAsManyPagesAsWereWantedBefore) {
  std::thread([] {  // nothing is known of its stacks
    const GuardedPages pages;
    const std::uint64_t sp = pages.begin() + 64;
    StackBounds bounds = stack_bounds(sp);
    EXPECT_EQ(bounds.high, pages.begin() + kPage) << "no page but the one that it runs on";

    EXPECT_TRUE(extend_bounds(bounds, sp + 2 * kPage));

    EXPECT_EQ(bounds.high, pages.begin() + 3 * kPage);
    EXPECT_EQ(stack_bounds(sp).high, pages.begin() + 3 * kPage);
    EXPECT_EQ(stack_bounds(pages.guard() - 64).high, pages.guard());
  })
      .join();
}

TEST_F(StackBoundsTest, CheckOtherStacksEveryTime) {
  std::uint64_t sp = 0;
  {
    const GuardedPages pages;
    sp = pages.guard() - kPage - 64;
    EXPECT_EQ(reached(stack_bounds(sp)), pages.guard());
    EXPECT_EQ(reached(bounds_of_interrupted(sp)), pages.guard());
  }

  EXPECT_EQ(reached(stack_bounds(sp)), sp + 64) << "all but the page that it would run on is gone";
  EXPECT_EQ(reached(bounds_of_interrupted(sp)), sp) << "it was unmapped";
}

// Stacks of coroutines, say, right below that of their thread: they can be unmapped at any time.
TEST_F(StackBoundsTest, DoNotTakeWhatIsBelowAStackForAPartOfIt) {
  constexpr std::size_t kBytes = 1U << 20U;
  void* const memory =
      mmap(nullptr, 2 * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  pthread_attr_t where;
  pthread_attr_init(&where);
  ASSERT_EQ(pthread_attr_setstack(&where, static_cast<char*>(memory) + kBytes, kBytes), 0);
  struct Seen {
    std::uint64_t below;  // the thread's stack
    std::uint64_t frame = 0;
    StackBounds own = {};
    std::uint64_t reached_below = 0;
  } seen = {address_of(memory) + kBytes / 2};
  pthread_t thread = 0;

  ASSERT_EQ(pthread_create(
                &thread, &where,
                [](void* result) -> void* {
                  auto& into = *static_cast<Seen*>(result);
                  into.frame = address_of(__builtin_frame_address(0));
                  into.own = stack_bounds(into.frame);
                  into.reached_below = reached(stack_bounds(into.below));
                  return nullptr;
                },
                &seen),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&where);
  munmap(memory, 2 * kBytes);

  EXPECT_GT(seen.own.high, seen.frame);
  EXPECT_LE(seen.own.high, address_of(memory) + 2 * kBytes);
  EXPECT_LE(seen.reached_below, seen.below + 64 * 1024);
}

// The control block of the main thread lies among mappings: a buffer below it is no part of a
// stack.
TEST_F(StackBoundsTest, OfABufferOfTheMainThreadEndSoonAlsoBelowItsControlBlock) {
  std::uint64_t block = 0;
  asm("mov %%fs:0, %0" : "=r"(block));

  const std::uint64_t reach = reached(stack_bounds(block - 4 * kPage));

  EXPECT_LE(reach, ((block - 4 * kPage) & ~(kPage - 1)) + 64 * 1024);
  EXPECT_NE(reach, block);
}

}  // namespace
}  // namespace tidemark::tracer
