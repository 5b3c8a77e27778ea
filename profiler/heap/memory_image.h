// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "common/fd.h"
#include "common/result.h"
#include "profiler/inject/remote_modules.h"

namespace tidemark::heap {

using inject::AddressRange;
using inject::Mapping;

// The memory of a process at one moment: of a copy that never runs, of a process that stands still,
// or of one that runs and changes it meanwhile. It is read block by block when it is asked for, and
// at most `most_bytes` of it are kept. Whatever is read is a stranger's: nothing of it is to be
// believed. What cannot be read is 0. Not thread-safe.
class MemoryImage {
 public:
  static constexpr std::uint64_t kBlockBytes = 64U << 10U;
  static constexpr std::uint64_t kPageBytes = 4096;

  // Fills all of the span, or returns false.
  using Read = std::function<bool(std::uint64_t address, std::span<char> into)>;

  // An error says why the kernel does not allow it.
  static Result<MemoryImage> open(pid_t pid, std::uint64_t most_bytes);
  // Of memory that tests make up; the mappings are in the order of their addresses.
  MemoryImage(std::vector<Mapping> mappings, Read read, std::uint64_t most_bytes);

  const std::vector<Mapping>& mappings() const { return mappings_; }
  // nullptr: nothing is mapped there.
  const Mapping* mapping_at(std::uint64_t address) const {
    return inject::mapping_at(mappings_, address);
  }

  // All of it, or false.
  bool read(std::uint64_t address, std::span<char> into);
  template <typename T>
  bool read_array(std::uint64_t address, std::span<T> into) {
    static_assert(std::is_trivially_copyable_v<T>);
    return read(address, {reinterpret_cast<char*>(into.data()), into.size_bytes()});
  }
  // 0 where it cannot be read.
  template <typename T>
  T load(std::uint64_t address) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value = {};
    const std::uint64_t offset = address % kBlockBytes;
    if (offset % kPageBytes + sizeof(T) <= kPageBytes) {
      const Block* const block = block_at(address);
      if (block != nullptr && block->has(offset)) {
        std::memcpy(&value, block->bytes.get() + offset, sizeof(T));
      }
      return value;
    }
    if (!read(address, {reinterpret_cast<char*>(&value), sizeof(T)})) {
      value = {};
    }
    return value;
  }
  std::uint64_t word(std::uint64_t address) { return load<std::uint64_t>(address); }
  // A text that ends with a 0, cut where it cannot be read and after `most_bytes`.
  std::string text(std::uint64_t address, std::size_t most_bytes);

  // Bytes that were read, and bytes of mapped memory that were asked for and could not be.
  std::uint64_t read_bytes() const { return read_bytes_; }
  std::uint64_t unread_bytes() const { return unread_bytes_; }

 private:
  static constexpr std::size_t kSlots = 4096;
  static constexpr std::uint64_t kPagesOfBlock = kBlockBytes / kPageBytes;

  struct Block {
    std::uint64_t number = 0;
    std::uint32_t pages = 0;  // a bit for each that was read
    bool was_used = false;    // since it was last passed over when room was made
    std::unique_ptr<char[]> bytes;

    bool has(std::uint64_t offset) const { return ((pages >> (offset / kPageBytes)) & 1U) != 0; }
  };

  // nullptr: nothing is mapped there. Valid until the next call.
  Block* block_at(std::uint64_t address) {
    const std::uint64_t number = address / kBlockBytes;
    Block* const recent = recent_[number % kSlots];
    if (recent != nullptr && recent->number == number) {
      recent->was_used = true;
      return recent;
    }
    return find_block(number);
  }
  Block* find_block(std::uint64_t number);
  void fill(Block& block);
  void fill_from(Block& block, const Mapping& mapping, AddressRange range);
  void make_room();

  std::vector<Mapping> mappings_;
  Read read_;
  Fd pagemap_;  // invalid: all pages are asked for
  std::uint64_t most_bytes_;
  std::vector<Block*> recent_ = std::vector<Block*>(kSlots);  // by number
  std::unordered_map<std::uint64_t, std::unique_ptr<Block>> blocks_;
  std::deque<std::uint64_t> order_;  // of blocks, the first to go first
  std::uint64_t read_bytes_ = 0;
  std::uint64_t unread_bytes_ = 0;
};

}  // namespace tidemark::heap
