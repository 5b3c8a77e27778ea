// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::tracer {

// Text in a buffer of fixed size, always terminated by a 0. What does not fit is left out.
class FixedText {
 public:
  template <std::size_t kBytes>
  explicit FixedText(char (&buffer)[kBytes]) noexcept : FixedText(buffer, kBytes) {}
  FixedText(char* buffer, std::size_t bytes) noexcept : begin_(buffer), left_(bytes - 1) {
    begin_[0] = '\0';
  }

  FixedText& add(char letter) noexcept {
    if (left_ == 0) {
      complete_ = false;
      return *this;
    }
    begin_[size_++] = letter;
    begin_[size_] = '\0';
    --left_;
    return *this;
  }
  FixedText& add(const char* text) noexcept {
    for (; *text != '\0'; ++text) {
      add(*text);
    }
    return *this;
  }
  FixedText& add_number(std::uint64_t value) noexcept {
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
