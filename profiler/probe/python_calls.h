// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "profiler/wire/probe_layout.h"

// What the probe asks of an interpreter, by functions of it whose addresses the tool has found. The
// caller holds the interpreter (PyGILState_Ensure). Exceptions are cleared.
namespace tidemark::probe {

// gc.collect(), and once more where that has freed something: what it has freed may have held more.
// Not PyGC_Collect(), which does nothing where the job has switched the collector off.
void collect_garbage(const wire::ProbePython& python, wire::ProbeOutcome& outcome) noexcept;

// torch.cuda.empty_cache(), and the cache of pinned memory where this torch can. Imports nothing,
// and initialises nothing.
void empty_cuda_caches(const wire::ProbePython& python, wire::ProbeOutcome& outcome) noexcept;

// A function of the process.
template <typename Function>
Function* function_at(std::uint64_t address) noexcept {
  return reinterpret_cast<Function*>(address);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace tidemark::probe
