// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/fd.h"
#include "common/result.h"

// Reading the text files and folders of /proc and /sys.
namespace tidemark::monitor {

inline constexpr std::uint64_t kBlockBytes = 512;  // unit of st_blocks

// Takes the line up to the next '\n' off the front of `rest`; false when nothing is left. Unlike
// next_line() it keeps a '\r': a process may have one in its name.
bool take_line(std::string_view& rest, std::string_view& line);

// Takes the next word (no blanks or tabs) off the front; empty when there is none.
std::string_view take_word(std::string_view& rest);

// The decimal number after leading blanks; what follows it is ignored.
std::optional<std::uint64_t> leading_number(std::string_view text);

// The value of a "  1234 kB" field in bytes; nullopt when it is no number or overflows.
std::optional<std::uint64_t> kib_field_bytes(std::string_view text);

// The number in the line "<key> 1234" of memory.stat, memory.events, vmstat, ...
std::optional<std::uint64_t> keyed_number(std::string_view text, std::string_view key);

// Undoes the octal escapes ("\040" for a blank) of mountinfo and maps.
std::string undo_octal_escapes(std::string_view text);

// Reads a text file piece by piece, in constant memory, and hands out pieces that consist of whole
// lines (the last may lack its '\n'). Stops early when `take` returns false, and at `limit_bytes`.
Status read_whole_lines(int fd, const std::function<bool(std::string_view)>& take,
                        std::size_t limit_bytes = static_cast<std::size_t>(-1));

// A small file of the kernel that is read again and again: opened once, then pread. Not
// thread-safe.
class KeptFile {
 public:
  KeptFile() = default;
  explicit KeptFile(std::string path);

  // The text, in `buffer`; cut when the buffer is too small. nullopt when the file is missing or
  // refuses to be read; a missing file is opened again at the next call.
  std::optional<std::string_view> read(std::span<char> buffer);

 private:
  std::string path_;
  Fd fd_;
};

// An open directory that is being listed. Owns its descriptor. Not thread-safe.
class DirectoryStream {
 public:
  // Does not follow a symbolic link at the end of `path`.
  static Result<DirectoryStream> open_at(int parent, const std::string& path);

  // nullptr at the end. Valid until the next call.
  const dirent* next();
  int fd() const;

 private:
  struct Close {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  explicit DirectoryStream(DIR* stream) : stream_(stream) {}

  std::unique_ptr<DIR, Close> stream_;
};

}  // namespace tidemark::monitor
