// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/unwind/unwind_hooks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "profiler/tracer/unwind/libunwind_fallback.h"
#include "profiler/tracer/unwind/unwind.h"
#include "tests/unit/tracer/unwind/call_chains.h"

namespace tidemark::tests {

thread_local tracer::StackTrace g_last_trace;
thread_local Pcs g_last_pcs;
thread_local Pcs g_last_noted;
std::atomic<int> g_compared = 0;
std::atomic<int> g_differences = 0;

namespace {

thread_local tracer::StackTrace g_reused_trace;

void keep(const tracer::StackTrace& trace) {
  g_last_noted = noted_returns();
  g_last_pcs.assign(trace.pc, trace.pc + trace.depth);
}

}  // namespace

[[gnu::noinline]] void hook_fresh() {
  const tracer::Registers registers = tracer::capture_registers();
  g_last_trace.reusable = false;
  tracer::unwind(registers, tracer::stack_bounds(registers.sp), g_last_trace);
  keep(g_last_trace);
}

[[gnu::noinline]] void hook_with_libunwind() {
  const tracer::Registers registers = tracer::capture_registers();
  EXPECT_EQ(tracer::unwind_with_libunwind(registers, g_last_trace), tracer::LibunwindResult::kDone);
  keep(g_last_trace);
}

[[gnu::noinline]] void hook_compare_reuse() {
  const tracer::Registers registers = tracer::capture_registers();
  const tracer::StackBounds bounds = tracer::stack_bounds(registers.sp);
  tracer::StackTrace fresh;
  tracer::unwind(registers, bounds, fresh);
  tracer::unwind(registers, bounds, g_reused_trace);
  const bool same = fresh.depth == g_reused_trace.depth &&
                    fresh.truncated == g_reused_trace.truncated &&
                    fresh.end_is_final == g_reused_trace.end_is_final &&
                    std::equal(fresh.pc, fresh.pc + fresh.depth, g_reused_trace.pc) &&
                    std::equal(fresh.hash, fresh.hash + fresh.depth, g_reused_trace.hash);
  g_differences += same ? 0 : 1;
  ++g_compared;
}

void expect_noted_stack(std::size_t count) {
  ASSERT_GE(g_last_noted.size(), count);
  ASSERT_GT(g_last_pcs.size(), count);
  EXPECT_EQ(
      Pcs(g_last_pcs.begin() + 1, g_last_pcs.begin() + 1 + static_cast<std::ptrdiff_t>(count)),
      Pcs(g_last_noted.begin(), g_last_noted.begin() + static_cast<std::ptrdiff_t>(count)));
}

}  // namespace tidemark::tests
