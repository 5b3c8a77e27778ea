// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tidemark::tracer {

// A loaded object file: the addresses where its unwind tables may be, which are all of it or the
// segment with the tables, and its PT_GNU_EH_FRAME segment.
struct LoadedModule {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t eh_frame_hdr = 0;  // 0: it has none
};

// Finds the module that contains `pc`. Called from hooks: lock-free, no allocation, errno
// untouched.
using ModuleFinder = bool (*)(std::uint64_t pc, LoadedModule& module) noexcept;

// Finds ld.so's lock-free lookup (`_dl_find_object`, glibc 2.35 and later). Calls ld.so: at
// start-up only, never from a hook. Until then no module is found. False: glibc is older.
bool resolve_module_lookup() noexcept;

// Replaces the lookup, for tests; nullptr: restores it.
void set_module_finder(ModuleFinder finder) noexcept;

bool find_module(std::uint64_t pc, LoadedModule& module) noexcept;

}  // namespace tidemark::tracer
