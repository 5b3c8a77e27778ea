// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

struct link_map;

namespace tidemark::tracer {

struct ElfSymbol {
  std::uint64_t address = 0;  // 0: there is none
  std::uint64_t bytes = 0;
};

// The symbols that a loaded module exports, read from its dynamic section by plain loads: no call
// of the dynamic linker, no lock, no allocation. Only for a module that cannot be unloaded
// meanwhile.
class ElfSymbols {
 public:
  explicit ElfSymbols(const link_map& linked) noexcept;
  // Defined in this module; others are not looked at.
  ElfSymbol find(const char* name) const noexcept;

 private:
  std::uint64_t bias_ = 0;
  std::uint64_t symbols_ = 0;
  std::uint64_t strings_ = 0;
  std::uint64_t hashes_ = 0;  // DT_GNU_HASH
};

}  // namespace tidemark::tracer
