// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tests {

using Pcs = std::vector<std::uint64_t>;

// Stand-ins for the malloc hook, to be called by call_chains.h.
extern thread_local tracer::StackTrace g_last_trace;
extern thread_local Pcs g_last_pcs;
extern thread_local Pcs g_last_noted;  // noted_returns() at that moment

void hook_fresh();           // unwinds into g_last_trace, with nothing to reuse
void hook_with_libunwind();  // the same by libunwind, if it is loaded

// Unwinds once more by reuse of its last trace, once afresh, and compares.
void hook_compare_reuse();
extern std::atomic<int> g_compared;
extern std::atomic<int> g_differences;

// That the last trace has the first `count` noted return addresses, right behind its first frame.
void expect_noted_stack(std::size_t count);

}  // namespace tidemark::tests
