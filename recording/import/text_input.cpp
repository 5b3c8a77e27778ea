// SPDX-License-Identifier: Apache-2.0
#include "recording/import/text_input.h"

#include <fcntl.h>

#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "recording/files.h"

namespace tidemark::recording {

namespace {

constexpr std::size_t kBufferBytes = 256U << 10U;

}  // namespace

TextInput::TextInput(Fd fd, std::string name)
    : fd_(std::move(fd)), name_(std::move(name)), buffer_(kBufferBytes) {}

// Reads once, behind what is there. False when nothing came.
bool TextInput::fill() {
  if (at_end_) {
    return false;
  }
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const auto n = read_some(fd_.get(), std::span(buffer_).subspan(end_));
  if (!n) {
    error_ =
        Error{n.error().code, fmt::format("{}: {}", name_, n.error().what), n.error().sys_errno};
  }
  at_end_ = !n || *n == 0;
  end_ += n ? *n : 0;
  return !at_end_;
}

std::string_view TextInput::peek() {
  // A pipe returns what is there: read on until there is enough to recognise the format.
  constexpr std::size_t kEnough = 8U << 10U;
  while (end_ - begin_ < kEnough && fill()) {
  }
  return {buffer_.data() + begin_, end_ - begin_};
}

void TextInput::skip_byte_order_mark() {
  if (peek().starts_with(kByteOrderMark)) {
    begin_ += kByteOrderMark.size();
  }
}

bool TextInput::next_line(Line& line) {
  if (line_number_ == 0) {
    skip_byte_order_mark();
  }
  std::size_t searched = 0;  // of the bytes from begin_
  while (true) {
    const char* const start = buffer_.data() + begin_;
    const std::size_t size = end_ - begin_;
    const void* const newline = std::memchr(start + searched, '\n', size - searched);
    if (newline != nullptr) {
      const auto length = static_cast<std::size_t>(static_cast<const char*>(newline) - start);
      line = {{start, length}, /*is_too_long=*/length > kMaxLineBytes};
      begin_ += length + 1;
      break;
    }
    searched = size;
    if (size > kMaxLineBytes) {
      line = {{}, /*is_too_long=*/true};
      skip_rest_of_line();
      break;
    }
    if (!fill()) {
      if (size == 0 || error_) {
        return false;
      }
      line = {{buffer_.data() + begin_, size}};  // the last line, without an end
      begin_ = end_;
      break;
    }
  }
  ++line_number_;
  if (line.is_too_long) {
    line.text = {};
  } else if (!line.text.empty() && line.text.back() == '\r') {
    line.text.remove_suffix(1);
  }
  return true;
}

void TextInput::skip_rest_of_line() {
  while (true) {
    const char* const start = buffer_.data() + begin_;
    const void* const newline = std::memchr(start, '\n', end_ - begin_);
    if (newline != nullptr) {
      begin_ += static_cast<std::size_t>(static_cast<const char*>(newline) - start) + 1;
      return;
    }
    begin_ = end_;
    if (!fill()) {
      return;
    }
  }
}

// Hands all that is left to `take`, piece by piece.
template <typename Take>
Status TextInput::drain(std::uint64_t limit_bytes, Take take) {
  std::uint64_t total = 0;
  do {
    total += end_ - begin_;
    if (total > limit_bytes) {
      return Error{Errc::kMalformed, fmt::format("{} is larger than {} bytes", name_, limit_bytes)};
    }
    TIDEMARK_TRY(take({buffer_.data() + begin_, end_ - begin_}));
    begin_ = end_;
  } while (fill());
  return error_ ? Status(*error_) : ok();
}

Result<std::string> TextInput::read_rest(std::size_t limit_bytes) {
  if (line_number_ == 0) {
    skip_byte_order_mark();
  }
  std::string text;
  const Status status = drain(limit_bytes, [&](std::string_view piece) {
    text += piece;
    return ok();
  });
  if (!status) {
    return status.error();
  }
  return text;
}

Status TextInput::spool_to(const std::string& path, std::uint64_t limit_bytes) {
  TIDEMARK_TRY_ASSIGN(const auto file, open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
  return drain(limit_bytes, [&](std::string_view piece) -> Status {
    Status status = write_all(file.get(), piece);
    return status ? status : named(path, status.error());
  });
}

std::optional<std::uint64_t> bytes_of_mib(std::string_view text) {
  constexpr double kMib = 1024.0 * 1024.0;
  constexpr double kMaxMib = 0x1p33;
  const auto value = parse_number<double>(text);
  if (!value || !(*value >= 0.0) || !(*value <= kMaxMib)) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(std::llround(*value * kMib));
}

}  // namespace tidemark::recording
