// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/result.h"

namespace tidemark::reader {

std::uint64_t page_bytes();

// Which pages of a process are there, by /proc/PID/pagemap. Entries are read a stretch at a time,
// and kept: what is asked for lies side by side, or is asked for again. Not thread-safe.
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
  static constexpr std::size_t kStretches = 1024;  // 2 GiB of memory

  struct Stretch {
    std::uint64_t number = 0;
    std::size_t filled = 0;  // entries that the file has; it ends with the address space
    std::array<std::uint64_t, kEntriesOfARead> entries{};
  };

  explicit PageMap(Fd file) : file_(std::move(file)), stretches_(kStretches) {}
  const Stretch* stretch(std::uint64_t number);

  Fd file_;
  std::vector<std::unique_ptr<Stretch>> stretches_;  // by number; nullptr: not read
};

}  // namespace tidemark::reader
