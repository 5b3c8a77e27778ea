// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {

enum class LibunwindResult {
  kDone,
  kNotLoaded,  // load_libunwind() was not called, or found no library
  kNoStack,    // it did not get as far as the caller of the hook
};

// Loads libunwind.so.8, or the library at `path`, without letting others see its symbols: it
// defines the _Unwind_* functions that C++ exceptions use. Calls ld.so: at start-up only, never
// from a hook. False: it is not installed, or lacks unw_backtrace.
bool load_libunwind(const char* path = "libunwind.so.8") noexcept;

// As unwind(), by libunwind: slower, nothing is reused, and it takes locks and calls ld.so, so that
// it can deadlock with dlopen and fork. The reference for tests, and for users who ask for it.
// To be called below the hook: `registers` tell which of the frames is the first one to keep.
LibunwindResult unwind_with_libunwind(const Registers& registers, StackTrace& trace) noexcept;

}  // namespace tidemark::tracer
