// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/site_records.h"
#include "tracker/sites/python_code.h"
#include "tracker/sites/site_tracks.h"

// Which frames of a stack people want to see, and which line of code stands for it.
namespace tidemark::tracker {

struct ShownFrame {
  const FrameRecord* frame = nullptr;
  std::string_view module;  // path, raw bytes; empty: none
  std::string place;        // its file for people, raw bytes: "train.py", "torch/functional.py"
  std::string library;      // "libc10.so", "torch"; the user's Python: empty
  CodeOwner owner = CodeOwner::kUser;  // of Python
  bool is_own = false;                 // the user's
};

// A stack for people, innermost first: without the tracer's own frames, the allocator's on top of
// it, what the C++ library puts between, and what calls main().
struct ShownStack {
  std::vector<ShownFrame> frames;
  std::size_t left_out = 0;
  // The line that the user thinks of: the first frame, of Python or native, with a source line of
  // the user's program; without any, the first in a program or library of the user's.
  std::optional<std::size_t> own_line;
  // What stands for a stack that has none: the innermost line of Python; where there is no Python
  // frame, the outermost function with a name that Python calls. nullopt: there is no Python.
  std::optional<std::size_t> stand_in;
  // It maps memory that Python puts small objects into: the line needed one more, and others have
  // theirs there too.
  bool is_python_arena = false;
};

// Native code of CPython.
bool is_of_the_interpreter(const ShownFrame& frame);
// "name+0x12" is a place in a function; "libfoo.so+0x1234" is all that is known.
bool has_name(const ShownFrame& shown);

// No frame: those further out are of the thread that has started this one.
bool is_thread_start(const ShownFrame& shown);

// All frames but the tracer's own.
std::vector<ShownFrame> frames_of(const RunSites& run, const std::vector<std::uint32_t>& numbers);
ShownStack shown_stack(const RunSites& run, const std::vector<std::uint32_t>& numbers);

// The lines of the user's own that a stack goes through, innermost first: the source line of each
// frame from own_line on that is such a one, or its function where no line is known. Where there is
// none, the one at stand_in.
std::vector<std::string> own_lines(const RunSites& run, const std::vector<std::uint32_t>& numbers);
// The function that the first of these is in; "": there is none.
std::string own_function(const RunSites& run, const std::vector<std::uint32_t>& numbers);
// What own_lines() would begin with if Python were not known: the user's own native line, else the
// native function that Python calls.
std::string native_line(const RunSites& run, const std::vector<std::uint32_t>& numbers);

// The frame of a stack that has this name in one of the above; else that at own_line, or at
// stand_in.
std::optional<std::size_t> find_line(const ShownStack& stack, const std::string& name);
// The native function that a Python frame calls: an operator of torch, else the outermost that has
// a name. nullopt: it calls none.
std::optional<std::size_t> native_call(const ShownStack& stack, std::size_t python);

}  // namespace tidemark::tracker
