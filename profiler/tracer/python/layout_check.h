// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "profiler/tracer/python/layout.h"

namespace tidemark::tracer {

// The addresses of types of an interpreter, which tell its objects.
struct PythonTypes {
  std::uint64_t code = 0;
  std::uint64_t text = 0;
  std::uint64_t bytes = 0;
  std::uint64_t frame = 0;     // of frame objects
  std::uint64_t function = 0;  // of functions written in Python
  std::uint64_t type = 0;      // of most types
};

enum class LayoutCheck {
  kUnknown,  // the thread has no frames now
  kSound,
  kWrong,
};

// Whether the frames of the calling thread, whose state is at `thread`, look as the layout says.
// Each word that a walk reads must lead to an object of the right type, or lie between two that do;
// an instruction must be one of its function. Reads only what was probed: no wrong layout can make
// it fail.
LayoutCheck check_layout(const PythonLayout& layout, const PythonTypes& types,
                         std::uint64_t thread) noexcept;

}  // namespace tidemark::tracer
