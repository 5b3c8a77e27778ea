// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "profiler/tracer/unwind/cfi_program.h"
#include "profiler/tracer/unwind/module_lookup.h"
#include "profiler/tracer/unwind/rule.h"

namespace tidemark::tracer {

// The entry of the function that holds `pc`, found through the sorted table of .eh_frame_hdr.
// Reads nothing outside of the module. False: there is none, or its bytes are invalid.
bool find_cfi_entry(const LoadedModule& module, std::uint64_t pc, CfiEntry& entry) noexcept;

// The rule at `pc`: kNoTable where no entry covers it.
Rule rule_from_tables(const LoadedModule& module, std::uint64_t pc) noexcept;

}  // namespace tidemark::tracer
