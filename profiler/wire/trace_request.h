// SPDX-License-Identifier: Apache-2.0
// The request to the tracer, as the text of the environment variable kRequestVariable:
//   1:MODE:SAMPLE_EVERY_BYTES:MOST_FILE_BYTES:FLAGS:DIRECTORY
// MODE is dormant, sampled or exact; FLAGS any of f (follow children over exec), u (unwind with
// libunwind); the directory, last, may hold any character. Freestanding, see trace_layout.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "profiler/wire/trace_layout.h"

namespace tidemark::wire {

struct TraceRequest {
  Mode mode = Mode::kDormant;
  std::uint64_t sample_every_bytes = 0;
  std::uint64_t most_file_bytes = 0;
  bool follow = false;
  bool libunwind = false;
  const char* directory = nullptr;  // into the text that was parsed
};

constexpr const char* name_of(Mode mode) {
  return mode == Mode::kExact ? "exact" : mode == Mode::kSampled ? "sampled" : "dormant";
}

namespace detail {

// Takes `word` from the front of `text`.
constexpr bool take_word(const char*& text, const char* word) {
  const char* at = text;
  for (; *word != '\0'; ++word, ++at) {
    if (*at != *word) {
      return false;
    }
  }
  text = at;
  return true;
}

constexpr bool take_number(const char*& text, std::uint64_t& value) {
  if (*text < '0' || *text > '9') {
    return false;
  }
  value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    const auto digit = static_cast<std::uint64_t>(*text - '0');
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, digit, &value)) {
      return false;
    }
  }
  return true;
}

constexpr bool take_mode(const char*& text, Mode& mode) {
  for (const Mode each : {Mode::kDormant, Mode::kSampled, Mode::kExact}) {
    if (take_word(text, name_of(each))) {
      mode = each;
      return true;
    }
  }
  return false;
}

}  // namespace detail

// False for anything that is not a request of this version; `request` is then not to be used.
constexpr bool parse_request(const char* text, TraceRequest& request) {
  if (!detail::take_word(text, "1:") || !detail::take_mode(text, request.mode) ||
      !detail::take_word(text, ":") || !detail::take_number(text, request.sample_every_bytes) ||
      !detail::take_word(text, ":") || !detail::take_number(text, request.most_file_bytes) ||
      !detail::take_word(text, ":")) {
    return false;
  }
  for (; *text != ':'; ++text) {
    if (*text == 'f') {
      request.follow = true;
    } else if (*text == 'u') {
      request.libunwind = true;
    } else {
      return false;
    }
  }
  ++text;
  request.directory = text;
  return text[0] == '/' && (request.mode != Mode::kSampled || request.sample_every_bytes > 0);
}

}  // namespace tidemark::wire
