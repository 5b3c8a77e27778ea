// SPDX-License-Identifier: Apache-2.0
// Single loads from the objects of an interpreter. The caller knows that they are there.
#pragma once

#include <cstdint>

#include "profiler/tracer/python/layout.h"
#include "profiler/tracer/unwind/stack_bounds.h"

namespace tidemark::tracer {

inline bool is_aligned(std::uint64_t address) noexcept { return address != 0 && address % 8 == 0; }

inline std::uint64_t load(std::uint64_t address, std::uint16_t offset) noexcept {
  return load_word(address + offset);
}

inline std::uint32_t load_half(std::uint64_t address, std::uint16_t offset) noexcept {
  const std::uint64_t at = address + offset;
  return static_cast<std::uint32_t>(load_word(at & ~std::uint64_t{7}) >> (at % 8 * 8));
}

inline std::uint8_t load_byte(std::uint64_t address, std::uint16_t offset) noexcept {
  const std::uint64_t at = address + offset;
  return static_cast<std::uint8_t>(load_word(at & ~std::uint64_t{7}) >> (at % 8 * 8));
}

struct Text {
  std::uint64_t characters = 0;  // address
  std::uint64_t length = 0;      // in characters
  unsigned width = 0;            // bytes for each; 0: it cannot be read
};
[[gnu::always_inline]] inline Text text_at(const PythonLayout& layout,
                                           std::uint64_t object) noexcept {
  const TextState state(load_half(object, kTextState), layout.minor);
  const std::uint64_t characters =
      state.is_compact ? object + (state.is_ascii ? layout.ascii_data : layout.compact_data)
                       : load(object, layout.compact_data);
  return {characters, load(object, kTextLength), characters == 0 ? 0 : state.width};
}

// Of the thread; `c_frame` is 0 where the version has none.
inline std::uint64_t innermost_frame(const PythonLayout& layout, std::uint64_t thread,
                                     std::uint64_t& c_frame) noexcept {
  constexpr std::uint16_t kNone = PythonLayout::kNone;
  c_frame = layout.thread_c_frame != kNone ? load(thread, layout.thread_c_frame) : 0;
  if (layout.thread_frame != kNone) {
    return load(thread, layout.thread_frame);
  }
  return is_aligned(c_frame) ? load(c_frame, layout.c_frame_frame) : 0;
}

// The code object of a frame, or what else is there.
[[gnu::always_inline]] inline std::uint64_t code_of(const PythonLayout& layout,
                                                    std::uint64_t frame) noexcept {
  return load(frame, layout.frame_code) & ~kTagMask;
}

[[gnu::always_inline]] inline std::uint32_t unit_of(const PythonLayout& layout, std::uint64_t frame,
                                                    std::uint64_t code) noexcept {
  if (layout.code_start != PythonLayout::kNone) {
    const std::uint64_t bytes = load(frame, layout.frame_instruction) - code - layout.code_start;
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(bytes) >> 1);
  }
  const auto index = static_cast<std::int32_t>(load_half(frame, layout.frame_instruction));
  return static_cast<std::uint32_t>(layout.minor == 9 ? index >> 1 : index);
}

// A frame of the interpreter itself, which runs no function.
[[gnu::always_inline]] inline bool is_interpreter_frame(const PythonLayout& layout,
                                                        std::uint64_t frame) noexcept {
  return layout.frame_owner != PythonLayout::kNone &&
         load_byte(frame, layout.frame_owner) >= kFirstInterpreterOwner;
}

// Without an owner: in 3.10 and before each frame is evaluated by a native frame of its own.
[[gnu::always_inline]] inline bool is_entry_frame(const PythonLayout& layout,
                                                  std::uint64_t frame) noexcept {
  return layout.frame_is_entry == PythonLayout::kNone ||
         load_byte(frame, layout.frame_is_entry) != 0;
}

}  // namespace tidemark::tracer
