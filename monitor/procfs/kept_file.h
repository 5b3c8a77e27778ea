// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/fd.h"

namespace tidemark::monitor {

// A small file of the kernel that is read again and again: opened once, then pread. Not
// thread-safe.
class KeptFile {
 public:
  KeptFile() = default;
  explicit KeptFile(std::string path);

  // The text, in `buffer`; cut when the buffer is too small. nullopt when the file is missing or
  // refuses to be read; a missing file is looked for again at the next call.
  std::optional<std::string_view> read(std::span<char> buffer);

 private:
  std::string path_;
  Fd fd_;
};

}  // namespace tidemark::monitor
