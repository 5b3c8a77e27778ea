// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "common/fd.h"
#include "common/result.h"

namespace tidemark::reader {

std::uint64_t page_bytes();

// Which pages of a process are there, by /proc/PID/pagemap. Entries are read a stretch at a time:
// what is asked for lies side by side mostly. Not thread-safe.
class PageMap {
 public:
  static constexpr std::size_t kEntriesOfARead = 512;

  static Result<PageMap> open(pid_t pid, const std::string& proc_root = "/proc");

  // 0 for a page that nothing is mapped at. False when the file cannot be read.
  bool entry(std::uint64_t page, std::uint64_t& value);
  static bool is_present(std::uint64_t entry) { return (entry >> 63U & 1U) != 0; }
  static bool is_swapped(std::uint64_t entry) { return (entry >> 62U & 1U) != 0; }

  // False also where it cannot be read: nothing is to be touched there.
  bool has_page_at(std::uint64_t address);
  // Of the pages that lie in this range as a whole.
  std::uint64_t present_bytes(std::uint64_t begin, std::uint64_t end);

 private:
  explicit PageMap(Fd file) : file_(std::move(file)) {}
  bool load(std::uint64_t first);

  Fd file_;
  std::array<std::uint64_t, kEntriesOfARead> entries_{};
  std::uint64_t first_ = 0;
  std::uint64_t known_ = 0;   // pages that the buffer stands for
  std::uint64_t filled_ = 0;  // of them, those that the file has; it ends with the address space
};

}  // namespace tidemark::reader
