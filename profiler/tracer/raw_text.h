// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <cstddef>
#include <cstdint>

#include "profiler/tracer/sys.h"

namespace tidemark::tracer {

// CLOCK_MONOTONIC; by the vDSO, so it may be read in a hook. 0 where system calls are filtered: it
// may come to one, and to read the processor's clock is a fault in strict mode.
inline std::uint64_t monotonic_ns() noexcept {
  if (sys::is_silent()) {
    return 0;
  }
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Text in a buffer of fixed size, always with a 0 at its end. What does not fit is left out.
class RawText {
 public:
  template <std::size_t kBytes>
  explicit RawText(char (&buffer)[kBytes]) noexcept : RawText(buffer, kBytes) {}
  RawText(char* buffer, std::size_t bytes) noexcept : begin_(buffer), left_(bytes - 1) {
    begin_[0] = '\0';
  }

  RawText& add(char letter) noexcept {
    if (left_ == 0) {
      complete_ = false;
      return *this;
    }
    begin_[size_++] = letter;
    begin_[size_] = '\0';
    --left_;
    return *this;
  }
  RawText& add(const char* text) noexcept {
    for (; *text != '\0'; ++text) {
      add(*text);
    }
    return *this;
  }
  RawText& add_number(std::uint64_t value) noexcept {
    char digits[20];
    int count = 0;
    do {
      digits[count++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    while (count > 0) {
      add(digits[--count]);
    }
    return *this;
  }

  std::size_t size() const noexcept { return size_; }
  bool complete() const noexcept { return complete_; }

 private:
  char* begin_;
  std::size_t size_ = 0;
  std::size_t left_;
  bool complete_ = true;
};

}  // namespace tidemark::tracer
