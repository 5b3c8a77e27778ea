// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/result.h"

namespace tidemark::inject {

// The memory of another process, as it was when this was opened: after an exec nothing can be read
// any more. Whatever is read is a stranger's: nothing of it is to be believed.
class RemoteMemory {
 public:
  // An error says why the kernel does not allow it.
  static Result<RemoteMemory> open(pid_t pid);
  // As it lies in a file in which each byte is at its address: /proc/PID/mem, or a copy.
  static RemoteMemory over(Fd file) { return RemoteMemory(std::move(file)); }

  // All of it, or false.
  bool read(std::uint64_t address, std::span<char> into) const;
  template <typename T>
  std::optional<T> load(std::uint64_t address) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    const bool is_read = read(address, {reinterpret_cast<char*>(&value), sizeof(value)});
    return is_read ? std::optional(value) : std::nullopt;
  }
  template <typename T>
  std::optional<std::vector<T>> load_array(std::uint64_t address, std::size_t count) const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!can_read_end_of(address, count, sizeof(T))) {  // no room for what cannot be there
      return std::nullopt;
    }
    std::vector<T> values(count);
    const bool is_read = read(address, {reinterpret_cast<char*>(values.data()), count * sizeof(T)});
    return is_read ? std::optional(std::move(values)) : std::nullopt;
  }
  // A text that ends with a 0, cut where it cannot be read and after `most_bytes`.
  std::string text(std::uint64_t address, std::size_t most_bytes) const;

  // Also to pages that the process itself may not write to; it then has a copy of its own of them.
  Status write(std::uint64_t address, std::span<const char> bytes) const;

 private:
  explicit RemoteMemory(Fd file) : file_(std::move(file)) {}
  bool can_read_end_of(std::uint64_t address, std::size_t count, std::size_t item_bytes) const;

  Fd file_;  // /proc/PID/mem
};

}  // namespace tidemark::inject
