// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/kernel_text.h"

#include <fcntl.h>
#include <sys/types.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"

namespace tidemark::monitor {
namespace {

constexpr std::size_t kPieceBytes = 32U << 10U;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool is_octal(char c) { return c >= '0' && c <= '7'; }

// A plain loop: find_first_not_of() is several times slower on a handful of blanks.
std::string_view without_leading_blanks(std::string_view text) {
  std::size_t first = 0;
  while (first < text.size() && is_blank(text[first])) {
    ++first;
  }
  return text.substr(first);
}

}  // namespace

bool take_line(std::string_view& rest, std::string_view& line) {
  if (rest.empty()) {
    return false;
  }
  const std::size_t end = rest.find('\n');
  line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return true;
}

std::string_view take_word(std::string_view& rest) {
  rest = without_leading_blanks(rest);
  std::size_t end = 0;
  while (end < rest.size() && !is_blank(rest[end])) {
    ++end;
  }
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(end);
  return word;
}

std::optional<std::uint64_t> leading_number(std::string_view text) {
  text = without_leading_blanks(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::uint64_t> kib_field_bytes(std::string_view text) {
  const auto kib = leading_number(text);
  if (!kib || *kib > std::numeric_limits<std::uint64_t>::max() / 1024) {
    return std::nullopt;
  }
  return *kib * 1024;
}

std::optional<std::uint64_t> keyed_number(std::string_view text, std::string_view key) {
  std::string_view line;
  while (take_line(text, line)) {
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return leading_number(line.substr(key.size()));
    }
  }
  return std::nullopt;
}

std::string undo_octal_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && text[i + 1] <= '3' && is_octal(text[i + 1]) &&
        is_octal(text[i + 2]) && is_octal(text[i + 3])) {
      const int code = (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0');
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

Status read_whole_lines(int fd, const std::function<bool(std::string_view)>& take,
                        std::size_t limit_bytes) {
  std::array<char, kPieceBytes> piece;
  std::size_t kept = 0;  // the start of a line that the last piece cut
  off_t offset = 0;
  while (static_cast<std::size_t>(offset) < limit_bytes) {
    TIDEMARK_TRY_ASSIGN(const auto size, pread_once(fd, std::span(piece).subspan(kept), offset));
    const std::string_view text(piece.data(), kept + size);
    if (size == 0) {
      take(text);
      return ok();
    }
    offset += static_cast<off_t>(size);
    const std::size_t end = text.rfind('\n') + 1;  // 0 when there is none
    if (end > 0 && !take(text.substr(0, end))) {
      return ok();
    }
    kept = text.size() - end;
    if (kept == piece.size()) {
      kept = 0;  // a line longer than any path: not the kernel's
    }
    std::memmove(piece.data(), piece.data() + end, kept);
  }
  return ok();
}

KeptFile::KeptFile(std::string path) : path_(std::move(path)) {}

std::optional<std::string_view> KeptFile::read(std::span<char> buffer) {
  if (path_.empty()) {
    return std::nullopt;
  }
  if (!fd_) {
    auto opened = open_file(path_, O_RDONLY);
    if (!opened) {
      return std::nullopt;
    }
    fd_ = std::move(*opened);
  }
  const auto size = pread_full(fd_.get(), buffer);
  if (!size) {
    fd_.reset();
    return std::nullopt;
  }
  return std::string_view(buffer.data(), *size);
}

Result<DirectoryStream> DirectoryStream::open_at(int parent, const std::string& path) {
  TIDEMARK_TRY_ASSIGN(auto fd,
                      tidemark::open_at(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  DIR* const stream = ::fdopendir(fd.get());
  if (stream == nullptr) {
    return system_error(fmt::format("cannot list {}", path), errno);
  }
  fd.release();  // the stream closes it
  return DirectoryStream(stream);
}

const dirent* DirectoryStream::next() {
  return ::readdir(stream_.get());  // NOLINT(concurrency-mt-unsafe): nobody shares the stream
}

int DirectoryStream::fd() const { return ::dirfd(stream_.get()); }

}  // namespace tidemark::monitor
