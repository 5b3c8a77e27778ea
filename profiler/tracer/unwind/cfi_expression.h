// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "profiler/tracer/unwind/byte_reader.h"

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

}  // namespace tidemark::tracer
