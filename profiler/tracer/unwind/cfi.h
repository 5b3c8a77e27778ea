// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "profiler/tracer/unwind/byte_reader.h"
#include "profiler/tracer/unwind/module_lookup.h"
#include "profiler/tracer/unwind/rule.h"

namespace tidemark::tracer {

// The value of a DWARF expression in a CFI program.
struct ExpressionValue {
  enum class Base : std::uint8_t {
    kUnsupported,
    kConstant,  // offset
    kSp,        // sp + offset
    kBp,        // bp + offset
    kCfa,       // CFA + offset
    kAtBp,      // the word at bp + offset
  };
  Base base = Base::kUnsupported;
  std::int64_t offset = 0;
};

// Evaluates without the values of registers: sp and bp stay symbols, rip is `pc`. That is enough
// for what linkers write for .plt (a sum that depends on rip) and compilers for realigned stacks (a
// word near bp). `starts_with_cfa`: the expression of a register starts with the CFA on its stack,
// that of the CFA itself with an empty one.
ExpressionValue evaluate_expression(ByteRange expression, std::uint64_t pc,
                                    bool starts_with_cfa) noexcept;

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

// The entry of the function that holds `pc`, found through the sorted table of .eh_frame_hdr.
// Reads nothing outside of the module. False: there is none, or its bytes are invalid.
bool find_cfi_entry(const LoadedModule& module, std::uint64_t pc, CfiEntry& entry) noexcept;

// The rule at `pc`: kNoTable where no entry covers it.
Rule rule_from_tables(const LoadedModule& module, std::uint64_t pc) noexcept;

}  // namespace tidemark::tracer
