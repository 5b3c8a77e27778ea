// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/python/layout_check.h"

#include <cstddef>

#include "profiler/tracer/python/frame_reader.h"
#include "profiler/wire/trace_layout.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

constexpr std::uint16_t kNone = PythonLayout::kNone;
constexpr std::uint64_t kWord = 8;

// Whether all words at these offsets can be read.
template <std::size_t kCount>
bool can_read(std::uint64_t address, const std::uint16_t (&offsets)[kCount]) noexcept {
  std::uint64_t last = 0;
  for (const std::uint16_t offset : offsets) {
    last = offset != kNone && offset > last ? offset : last;
  }
  constexpr std::uint64_t kPage = 4096;
  if (!is_aligned(address)) {
    return false;
  }
  const std::uint64_t end = (address + last) & ~(kWord - 1);
  for (std::uint64_t at = address; at < end; at += kPage) {
    if (!is_readable(at)) {
      return false;
    }
  }
  return is_readable(end);
}

bool is_of_type(std::uint64_t object, std::uint64_t type) noexcept {
  return can_read(object, {kObjectType, kTextState}) && load(object, kObjectType) == type;
}

// Of a class that is derived from str, too: compile() takes the names of files as they are.
bool is_text(std::uint64_t object, const PythonTypes& types) noexcept {
  return is_of_type(object, types.text) ||
         (can_read(object, {kObjectType, kTextState}) &&
          can_read(load(object, kObjectType), {kObjectType, kTypeFlags}) &&
          (load(load(object, kObjectType), kTypeFlags) & kIsText) != 0);
}

bool is_object(std::uint64_t object, const PythonTypes& types) noexcept {
  return can_read(object, {kObjectType}) && is_of_type(load(object, kObjectType), types.type);
}

bool is_sound_frame(const PythonLayout& layout, const PythonTypes& types,
                    std::uint64_t frame) noexcept {
  if (layout.frame_is_object && load(frame, kObjectType) != types.frame) {
    return false;
  }
  if (layout.frame_function != kNone &&
      !is_of_type(load(frame, layout.frame_function), types.function)) {
    return false;
  }
  return layout.frame_globals == kNone || is_object(load(frame, layout.frame_globals), types);
}

// How many units of instructions a code object has; 0: not known.
std::uint64_t units_of(const PythonLayout& layout, const PythonTypes& types,
                       std::uint64_t code) noexcept {
  if (layout.code_start != kNone) {
    return load(code, kObjectSize);
  }
  const std::uint64_t bytes = load(code, layout.code_identity);
  return is_of_type(bytes, types.bytes) ? load(bytes, kBytesSize) / 2 : 0;
}

bool is_sound_code(const PythonLayout& layout, const PythonTypes& types, std::uint64_t frame,
                   std::uint64_t code) noexcept {
  constexpr std::uint32_t kMostLines = 1U << 24U;
  if (!can_read(code, {layout.code_first_line, layout.code_file, layout.code_name,
                       layout.code_lines, layout.code_identity, layout.code_start}) ||
      load(code, kObjectType) != types.code || !is_text(load(code, layout.code_file), types) ||
      !is_text(load(code, layout.code_name), types) ||
      !is_of_type(load(code, layout.code_lines), types.bytes)) {
    return false;
  }
  const std::uint32_t unit = unit_of(layout, frame, code);
  return TextState(load_half(load(code, layout.code_name), kTextState), layout.minor).width != 0 &&
         load_half(code, layout.code_first_line) < kMostLines &&
         (unit < units_of(layout, types, code) || unit == wire::kNoUnit);
}

// The C frame of the next native frame that evaluates must hold the frame that called `frame`. In
// 3.10 they do not hold one, and there may be more frames: Cython adds some where it is traced.
bool is_sound_c_frame(const PythonLayout& layout, std::uint64_t c_frame,
                      std::uint64_t frame) noexcept {
  const std::uint64_t outer = load(c_frame, layout.c_frame_previous);
  const std::uint64_t caller = load(frame, layout.frame_previous);
  if (caller == 0 || (outer == 0 && layout.c_frame_frame == kNone)) {
    return true;
  }
  return can_read(outer, {layout.c_frame_frame, layout.c_frame_previous}) &&
         (layout.c_frame_frame == kNone || load(outer, layout.c_frame_frame) == caller);
}

}  // namespace

LayoutCheck check_layout(const PythonLayout& layout, const PythonTypes& types,
                         std::uint64_t thread) noexcept {
  constexpr int kMostFrames = 64;
  if (!can_read(thread, {layout.thread_frame, layout.thread_c_frame})) {
    return LayoutCheck::kWrong;
  }
  if (layout.thread_c_frame != kNone &&
      !can_read(load(thread, layout.thread_c_frame),
                {layout.c_frame_frame, layout.c_frame_previous})) {
    return load(thread, layout.thread_c_frame) == 0 ? LayoutCheck::kUnknown : LayoutCheck::kWrong;
  }
  std::uint64_t c_frame = 0;
  std::uint64_t frame = innermost_frame(layout, thread, c_frame);
  int functions = 0;
  for (int i = 0; i < kMostFrames && frame != 0; ++i) {
    if (!can_read(frame, {layout.frame_previous, layout.frame_code, layout.frame_instruction,
                          layout.frame_owner, layout.frame_is_entry, layout.frame_function,
                          layout.frame_globals})) {
      return LayoutCheck::kWrong;
    }
    if (!is_interpreter_frame(layout, frame)) {
      if (!is_sound_frame(layout, types, frame) ||
          !is_sound_code(layout, types, frame, code_of(layout, frame))) {
        return LayoutCheck::kWrong;
      }
      ++functions;
    }
    if (c_frame != 0 && layout.c_frame_previous != kNone && is_entry_frame(layout, frame)) {
      if (!is_sound_c_frame(layout, c_frame, frame)) {
        return LayoutCheck::kWrong;
      }
      c_frame = load(c_frame, layout.c_frame_previous);
    }
    frame = load(frame, layout.frame_previous);
  }
  return functions > 0 ? LayoutCheck::kSound : LayoutCheck::kUnknown;
}

}  // namespace tidemark::tracer
