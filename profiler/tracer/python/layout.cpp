// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/python/layout.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

constexpr std::uint64_t kCookie = 0x7970677562656478;  // "xdebugpy" in little endian
constexpr std::size_t kVersionWord = 1;
constexpr std::size_t kFreeThreadedWord = 2;
constexpr std::uint64_t kLargestOffset = 512;

// Which word of _Py_DebugOffsets holds what.
struct PublishedWords {
  std::uint8_t thread_frame;
  std::uint8_t frame_previous, frame_code, frame_instruction, frame_owner;
  std::uint8_t code_file, code_qualname, code_lines, code_first_line, code_start;
};
constexpr PublishedWords kPublished[] = {
    {23, 29, 30, 31, 33, 35, 37, 38, 39, 43},  // 3.13
    {26, 32, 33, 34, 36, 40, 42, 43, 44, 48},  // 3.14
    {26, 40, 41, 42, 44, 48, 50, 51, 52, 56},  // 3.15
};

constexpr PythonLayout layout_of_3_9() {
  PythonLayout layout;
  layout.minor = 9;
  layout.frame_is_object = true;
  layout.frame_globals = 48;
  layout.thread_frame = 24;
  layout.frame_previous = 24;
  layout.frame_code = 32;
  layout.frame_instruction = 104;
  layout.code_first_line = 40;
  layout.code_file = 104;
  layout.code_name = 112;
  layout.code_lines = 120;
  layout.code_identity = 48;
  return layout;
}

constexpr PythonLayout layout_of_3_10() {
  PythonLayout layout = layout_of_3_9();
  layout.minor = 10;
  layout.thread_c_frame = 48;
  layout.c_frame_previous = 8;
  layout.frame_instruction = 96;
  return layout;
}

constexpr PythonLayout layout_of_3_11() {
  PythonLayout layout;
  layout.minor = 11;
  layout.thread_frame = PythonLayout::kNone;
  layout.thread_c_frame = 56;
  layout.c_frame_frame = 8;
  layout.c_frame_previous = 16;
  layout.frame_previous = 48;
  layout.frame_code = 32;
  layout.frame_instruction = 56;
  layout.frame_is_entry = 68;
  layout.frame_function = 0;
  layout.frame_globals = 8;
  layout.code_first_line = 72;
  layout.code_file = 112;
  layout.code_name = 128;
  layout.code_lines = 136;
  layout.code_identity = 16;
  layout.code_start = 184;
  return layout;
}

constexpr PythonLayout layout_of_3_12() {
  PythonLayout layout = layout_of_3_11();
  layout.minor = 12;
  layout.c_frame_frame = 0;
  layout.c_frame_previous = PythonLayout::kNone;  // not needed: frames of the interpreter tell
  layout.frame_previous = 8;
  layout.frame_code = 0;
  layout.frame_is_entry = PythonLayout::kNone;
  layout.frame_owner = 70;
  layout.frame_function = 16;
  layout.frame_globals = 24;
  layout.code_first_line = 68;
  layout.code_start = 192;
  layout.ascii_data = 40;
  layout.compact_data = 56;
  return layout;
}

}  // namespace

bool known_layout(std::uint16_t minor, PythonLayout& layout) noexcept {
  switch (minor) {
    case 9:
      layout = layout_of_3_9();
      return true;
    case 10:
      layout = layout_of_3_10();
      return true;
    case 11:
      layout = layout_of_3_11();
      return true;
    case 12:
      layout = layout_of_3_12();
      return true;
    default:
      return false;
  }
}

bool published_layout(const PublishedOffsets& published, PythonLayout& layout,
                      const char*& problem) noexcept {
  const auto& words = published.words;
  const std::uint64_t minor = (words[kVersionWord] >> 16U) & 0xff;
  if (words[0] != kCookie || words[kVersionWord] >> 24U != 3) {
    problem = "the interpreter does not say where its frames are";
    return false;
  }
  if (words[kFreeThreadedWord] != 0) {
    problem = "free-threaded builds of Python are not supported yet";
    return false;
  }
  if (minor < kFirstPublishedMinor || minor > kLastPythonMinor) {
    problem = "this version of Python is not known";
    return false;
  }
  const PublishedWords& places = kPublished[minor - kFirstPublishedMinor];
  bool is_sane = true;
  const auto take = [&](std::uint8_t word) {
    is_sane = is_sane && words[word] < kLargestOffset;
    return static_cast<std::uint16_t>(words[word]);
  };
  layout = layout_of_3_12();
  layout.minor = static_cast<std::uint16_t>(minor);
  layout.thread_c_frame = PythonLayout::kNone;
  layout.c_frame_frame = PythonLayout::kNone;
  layout.frame_function = PythonLayout::kNone;
  layout.frame_globals = PythonLayout::kNone;
  layout.thread_frame = take(places.thread_frame);
  layout.frame_previous = take(places.frame_previous);
  layout.frame_code = take(places.frame_code);
  layout.frame_instruction = take(places.frame_instruction);
  layout.frame_owner = take(places.frame_owner);
  layout.code_file = take(places.code_file);
  layout.code_name = take(places.code_qualname);
  layout.code_lines = take(places.code_lines);
  layout.code_first_line = take(places.code_first_line);
  layout.code_start = take(places.code_start);
  if (!is_sane) {
    problem = "what the interpreter says of its frames makes no sense";
  }
  return is_sane;
}

}  // namespace tidemark::tracer
