// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tidemark::tracer {

// Where CPython keeps what a walk of its frames reads: offsets in bytes. They differ from one minor
// version to the next, and move in patch releases and vendors' builds too: a layout is only to be
// used after PythonInterpreter has checked it against the process.
struct PythonLayout {
  static constexpr std::uint16_t kNone = 0xffff;

  std::uint16_t minor = 0;  // 3.minor

  // Of a thread state.
  std::uint16_t thread_frame = 0;        // the innermost frame; kNone: by the C frame
  std::uint16_t thread_c_frame = kNone;  // 3.10 to 3.12
  // Of a C frame (3.10 to 3.12), which is a local variable of the function that evaluates.
  std::uint16_t c_frame_frame = kNone;
  std::uint16_t c_frame_previous = kNone;
  // Of a frame.
  std::uint16_t frame_previous = 0;
  std::uint16_t frame_code = 0;
  std::uint16_t frame_instruction = 0;
  std::uint16_t frame_owner = kNone;     // from 3.12 on: tells frames of the interpreter itself
  std::uint16_t frame_is_entry = kNone;  // 3.11: the outermost frame of one C frame
  // Only to check the layout; kNone where the interpreter itself publishes that.
  std::uint16_t frame_function = kNone;
  std::uint16_t frame_globals = kNone;
  bool frame_is_object = false;  // with a type
  // Of a code object.
  std::uint16_t code_first_line = 0;
  std::uint16_t code_file = 0;
  std::uint16_t code_name = 0;  // co_qualname where it exists
  std::uint16_t code_lines = 0;
  std::uint16_t code_identity = 0;   // a word that differs from one code object to most others:
                                     // the size of its instructions, or where they are
  std::uint16_t code_start = kNone;  // of the instructions; kNone: frames hold an index
  // Of a compact string: where its characters are. Of another one the second is where the address
  // of its characters is: that of an object of a class that is derived from str.
  std::uint16_t ascii_data = 48;
  std::uint16_t compact_data = 72;
};

// The same in all supported versions.
inline constexpr std::uint16_t kObjectReferences = 0;
inline constexpr std::uint16_t kObjectType = 8;
inline constexpr std::uint16_t kObjectSize = 16;
inline constexpr std::uint16_t kBytesSize = 16;
inline constexpr std::uint16_t kBytesData = 32;
inline constexpr std::uint16_t kTextLength = 16;
inline constexpr std::uint16_t kTextState = 32;
inline constexpr std::uint16_t kTypeFlags = 168;
inline constexpr std::uint64_t kIsText = 1U << 28U;  // a flag of types that are derived from str
inline constexpr std::uint64_t kTagMask = 7;         // of references in frames, from 3.14 on

// The word at kTextState.
struct TextState {
  TextState(std::uint32_t word, std::uint16_t minor) noexcept {
    // From 3.14 on the first of its fields may take 16 bits instead of 2.
    const std::uint32_t fields =
        minor >= 14 && (word >> 5U & 1U) == 0 ? word >> 14U & ~std::uint32_t{3} : word;
    const unsigned kind = fields >> 2U & 7U;
    width = kind == 1 || kind == 2 || kind == 4 ? kind : 0;
    is_compact = (fields >> 5U & 1U) != 0;
    is_ascii = (fields >> 6U & 1U) != 0;
  }
  unsigned width = 0;       // bytes for each character; 0: not known
  bool is_compact = false;  // its characters follow it; else an address of them does
  bool is_ascii = false;
};

// Frames with such an owner belong to a call of the interpreter, not to a function.
inline constexpr std::uint8_t kFirstInterpreterOwner = 3;

inline constexpr std::uint16_t kFirstPythonMinor = 9;
inline constexpr std::uint16_t kFirstPublishedMinor = 13;  // with _Py_DebugOffsets
inline constexpr std::uint16_t kLastPythonMinor = 15;

// The layout of 3.9 to 3.12. False: of no such version.
bool known_layout(std::uint16_t minor, PythonLayout& layout) noexcept;

// The layout that a runtime publishes itself, from 3.13 on: the words of _Py_DebugOffsets, with
// which _PyRuntime begins. `problem`: why it cannot be used, when false.
inline constexpr std::size_t kPublishedWords = 64;
struct PublishedOffsets {
  std::uint64_t words[kPublishedWords];
};
bool published_layout(const PublishedOffsets& published, PythonLayout& layout,
                      const char*& problem) noexcept;

}  // namespace tidemark::tracer
