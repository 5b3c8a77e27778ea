// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/site_records.h"
#include "tracker/sites/site_tracks.h"

// Which frames of a stack people want to see.
namespace tidemark::tracker {

struct ShownFrame {
  const FrameRecord* frame = nullptr;
  std::string_view module;  // path, raw bytes; empty: none
};

// A stack for people, innermost first: without the tracer's own frames, the allocator's on top of
// it, what the C++ library puts between, and what calls main().
struct ShownStack {
  std::vector<ShownFrame> frames;
  std::size_t left_out = 0;
  // The line that the user thinks of: the first frame with a source line of the user's program;
  // without any, the first in a program or library of the user's.
  std::optional<std::size_t> own_line;
  // Where Python calls into libraries, by the outermost function that has a name; nullopt: it is
  // not in the stack, or allocates itself.
  std::optional<std::size_t> call_from_python;
};

// All frames but the tracer's own.
std::vector<ShownFrame> frames_of(const RunSites& run, const std::vector<std::uint32_t>& numbers);
ShownStack shown_stack(const RunSites& run, const std::vector<std::uint32_t>& numbers);

// The lines of the user's own that a stack goes through, innermost first: the source line of each
// frame from own_line on that is such a one, or its function where no line is known. Where there is
// none, the function that Python calls.
std::vector<std::string> own_lines(const RunSites& run, const std::vector<std::uint32_t>& numbers);
// The frame of a stack that has this name in own_lines(); else that at own_line, or at
// call_from_python.
std::optional<std::size_t> find_line(const ShownStack& stack, const std::string& name);

// "collate(Batch&) train.cpp:42", "malloc_consolidate [libc.so.6]"; escaped.
std::string frame_text(const ShownFrame& frame, std::size_t columns);
// The frame that stands for the stack: that of a line, else the first one; "" when the stack is not
// known.
std::string headline(const ShownStack& stack, const std::string& line, std::size_t columns);

}  // namespace tidemark::tracker
