// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tidemark::tests {

// Counts what this thread asks of malloc and its family while it is alive. Works only where the
// test program may have a malloc of its own, that is not under a sanitizer.
class NoAllocScope {
 public:
  NoAllocScope();
  ~NoAllocScope();
  NoAllocScope(const NoAllocScope&) = delete;
  NoAllocScope& operator=(const NoAllocScope&) = delete;

  static bool works();
  std::size_t calls() const;
};

}  // namespace tidemark::tests
