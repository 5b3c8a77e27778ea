// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "profiler/tracer/unwind/byte_reader.h"
#include "profiler/tracer/unwind/rule.h"

namespace tidemark::tracer {

// The entry of one function in .eh_frame (FDE) together with its common part (CIE).
struct CfiEntry {
  ByteRange common_program;
  ByteRange program;
  std::uint64_t code_alignment = 1;
  std::int64_t data_alignment = -8;
  std::uint64_t return_address_register = 16;
  std::uint64_t pc_begin = 0;
  std::uint64_t pc_end = 0;
  bool is_signal_frame = false;
};

// Runs the programs of `entry` up to `pc` and returns the rule that holds there. kUnsupported for
// instructions that we do not implement and for invalid bytes.
Rule run_cfi(const CfiEntry& entry, std::uint64_t pc) noexcept;

}  // namespace tidemark::tracer
