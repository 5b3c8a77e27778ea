// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>

namespace tidemark::heap {

// What asks a process about its memory. Whatever it answers is a stranger's: nothing of it is to be
// believed.
struct MemoryQueries {
  // Fills all of the span, or returns false. Nothing is read where no page is: that would make one.
  std::function<bool(std::uint64_t address, std::span<char> into)> read;
  // Bytes of whole pages in a range that are in RAM.
  std::function<std::uint64_t(std::uint64_t begin, std::uint64_t end)> present_bytes;

  template <typename T>
  std::optional<T> load(std::uint64_t address) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    return read(address, {reinterpret_cast<char*>(&value), sizeof(value)}) ? std::optional(value)
                                                                           : std::nullopt;
  }
};

}  // namespace tidemark::heap
