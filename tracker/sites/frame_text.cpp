// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/frame_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "tracker/sites/native_names.h"

namespace tidemark::tracker {
namespace {

constexpr std::size_t kLeastName = 16;  // columns

bool is_python(const ShownFrame& frame) { return frame.frame->kind == FrameKind::kPython; }

std::string function_text(const ShownFrame& frame) {
  const std::string& function = frame.frame->function;
  if (is_python(frame)) {
    return escape_text(python_function(function));
  }
  const std::string_view module = basename_of(frame.module);
  return escape_text(has_name(frame) || module.empty()
                         ? function
                         : fmt::format("{}{}", frame.library, function.substr(module.size())));
}

// "train.py:42", "[libc.so.6]"; "": nothing is known.
std::string source_text(const ShownFrame& frame) {
  if (frame.place.empty()) {
    return frame.module.empty() ? "" : fmt::format("[{}]", escape_text(frame.library));
  }
  return frame.frame->line ? fmt::format("{}:{}", escape_text(frame.place), *frame.frame->line)
                           : escape_text(frame.place);
}

// The end of a place tells more than its beginning.
std::string shorten_front(const std::string& text, std::size_t columns) {
  constexpr std::string_view kCut = "...";
  if (text.size() <= columns || columns <= kCut.size()) {
    return shorten(text, columns);
  }
  std::size_t from = text.size() - (columns - kCut.size());
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xc0U) == 0x80U) {
    ++from;  // not within a character
  }
  return fmt::format("{}{}", kCut, text.substr(from));
}

// Of the native frames from `line` inwards up to the next one of Python: an operator of torch, else
// the outermost that has a name, else that of a module.
std::string native_call_text(const ShownStack& stack, std::size_t line) {
  std::string named;
  std::string of_a_module;
  for (std::size_t i = line;
       i > 0 && !is_python(stack.frames[i - 1]) && !is_thread_start(stack.frames[i - 1]); --i) {
    const ShownFrame& frame = stack.frames[i - 1];
    std::string name = name_for_python(frame);
    if (frame.frame->function.starts_with("at::_ops::")) {
      return name;
    }
    std::string& first = has_name(frame) ? named : of_a_module;
    if (first.empty()) {
      first = std::move(name);
    }
  }
  return named.empty() ? of_a_module : named;
}

}  // namespace

ShownStack shown_stack(const RunSites& run, const RankedSite& site) {
  // Of 3.9, and of 3.10 and later. What the module mmap maps may have this size too.
  constexpr std::uint64_t kOldArena = 256U << 10U;
  constexpr std::uint64_t kArena = 1U << 20U;
  ShownStack stack = shown_stack(run, site.frames);
  const std::uint64_t blocks = site.alloc_blocks;
  const bool has_size =
      blocks > 0 && (site.alloc_bytes == blocks * kArena || site.alloc_bytes == blocks * kOldArena);
  stack.is_python_arena = site.kind == AllocationKind::kAnonymousMap && has_size &&
                          !stack.frames.empty() && is_of_the_interpreter(stack.frames.front()) &&
                          !stack.frames.front().frame->function.starts_with("new_mmap");
  return stack;
}

std::string frame_text(const ShownFrame& frame, std::size_t columns) {
  const std::string place = shorten_front(source_text(frame), columns / 2);
  const std::size_t room = columns > place.size() + 1 ? columns - place.size() - 1 : columns / 2;
  return fmt::format("{}{}{}", shorten(function_text(frame), std::max(room, kLeastName)),
                     place.empty() ? "" : " ", place);
}

std::string place_text(const ShownFrame& frame, std::size_t columns) {
  if (!is_python(frame) || frame.place.empty()) {
    return frame_text(frame, columns);
  }
  const std::string place = shorten_front(source_text(frame), columns / 2);
  const std::size_t used = place.size() + std::string_view(" in ").size();
  return fmt::format(
      "{} in {}", place,
      shorten(function_text(frame), std::max(columns > used ? columns - used : 0, kLeastName)));
}

std::string call_text(const ShownStack& stack, std::size_t line) {
  if (!is_python(stack.frames[line])) {
    return "";
  }
  for (std::size_t i = line; i > 0 && !is_thread_start(stack.frames[i - 1]); --i) {
    const ShownFrame& inner = stack.frames[i - 1];
    if (!is_python(inner)) {
      if (const std::string called = native_call_text(stack, i); !called.empty()) {
        return escape_text(called);
      }
    } else if (inner.library != "importlib") {
      return escape_text(python_call(*inner.frame));
    }
  }
  return line > 0 && is_python(stack.frames[line - 1]) ? "import a module" : "";
}

std::string headline(const ShownStack& stack, const std::string& line, std::size_t columns) {
  if (stack.frames.empty()) {
    return "";
  }
  const std::size_t at = find_line(stack, line).value_or(0);
  const std::string place = place_text(stack.frames[at], columns);
  if (stack.is_python_arena) {
    return fmt::format("{} (arena of small objects)", place);
  }
  const auto own = stack.frames.begin() + static_cast<std::ptrdiff_t>(at);
  const std::string behind =
      std::any_of(stack.frames.begin(), own, is_thread_start) ? " (in a thread)" : "";
  const std::string call = call_text(stack, at);
  constexpr std::string_view kImport = "import ";
  const std::string text = call.starts_with(kImport)
                               ? fmt::format("{} importing {}", place, call.substr(kImport.size()))
                               : fmt::format("{} calling {}", place, call);
  const std::size_t most = std::max(columns - std::min(columns, behind.size()), place.size());
  const bool has_room = most >= place.size() + std::string_view(" calling ").size() + kLeastName;
  return (call.empty() || (text.size() > most && !has_room) ? place : shorten(text, most)) + behind;
}

}  // namespace tidemark::tracker
