// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/libunwind_fallback.h"

#include <gtest/gtest.h>

#include "profiler/tracer/unwind/unwind.h"
#include "tests/unit/tracer/unwind/call_chains.h"
#include "tests/unit/tracer/unwind/unwind_hooks.h"

namespace tidemark::tracer {
namespace {

TEST(LibunwindFallback, SaysThatTheLibraryIsMissing) {
  StackTrace trace;
  if (unwind_with_libunwind({1234, 0, 0}, trace) != LibunwindResult::kNotLoaded) {
    GTEST_SKIP() << "another test of this process loaded it, for good";
  }

  EXPECT_FALSE(load_libunwind("libunwind-that-nobody-has.so.8"));
  EXPECT_FALSE(load_libunwind("libc.so.6")) << "it has no unw_backtrace";
  EXPECT_EQ(unwind_with_libunwind({1234, 0, 0}, trace), LibunwindResult::kNotLoaded);
  ASSERT_EQ(trace.depth, 1U);
  EXPECT_EQ(trace.pc[0], 1234U);
}

TEST(LibunwindFallback, GivesTheSameStackAsOurs) {
  if (!load_libunwind() || !start_unwinder()) {
    GTEST_SKIP() << "libunwind.so.8 is not installed, or glibc is older than 2.35";
  }
  const auto both = [] {
    tests::hook_with_libunwind();
    const tests::Pcs theirs = tests::g_last_pcs;
    const std::uint64_t hash = tests::g_last_trace.hash[1];
    tests::hook_fresh();
    ASSERT_EQ(tests::Pcs(theirs.begin() + 1, theirs.end()),
              tests::Pcs(tests::g_last_pcs.begin() + 1, tests::g_last_pcs.end()));
    EXPECT_EQ(tests::g_last_trace.hash[1], hash);
  };

  tests::call_plain(20, both);

  EXPECT_GT(tests::g_last_pcs.size(), 21U);
}

TEST(LibunwindFallback, SaysThatTheHookIsNotOnTheStack) {
  if (!load_libunwind()) {
    GTEST_SKIP() << "libunwind.so.8 is not installed";
  }
  StackTrace trace;

  EXPECT_EQ(unwind_with_libunwind({1234, 0, 0}, trace), LibunwindResult::kNoStack);
  EXPECT_EQ(trace.depth, 1U);
}

}  // namespace
}  // namespace tidemark::tracer
