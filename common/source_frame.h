// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/site_records.h"

namespace tidemark {

// How much is known about a frame.
enum class FrameDetail {
  kNothing,  // an address outside every module
  kModule,   // function is "libfoo.so+0x1234"; the name of the nearest symbol may follow
  kSymbol,   // function is "name+0x12"
  kSource,   // function and, as a rule, file and line, from debug information
};

// One line of a stack as a person reads it. All text is raw bytes from files of strangers: escape
// it before it is shown.
struct SourceFrame {
  FrameKind kind = FrameKind::kNative;
  FrameDetail detail = FrameDetail::kNothing;
  std::string function;  // demangled, never empty
  std::string file;      // empty: unknown
  std::optional<std::uint32_t> line;
  bool inlined = false;       // into the frame that follows
  std::string module;         // path of the object file; empty: none
  std::string build_id;       // of the module, hexadecimal; empty: none
  std::uint64_t address = 0;  // in the module's file; without a module: in the process

  bool operator==(const SourceFrame&) const = default;
};

}  // namespace tidemark
