// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::tracer {

// A loaded object: where its unwind tables may be, which is all of it or the segment that holds
// them, and its PT_GNU_EH_FRAME segment.
struct Module {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t eh_frame_hdr = 0;  // 0: it has none
};

// Gives the module that holds `pc`. Called from hooks: lock-free, no allocation, errno untouched.
using ModuleFinder = bool (*)(std::uint64_t pc, Module& module) noexcept;

// Finds ld.so's lock-free lookup (`_dl_find_object`, glibc 2.35 and later). Calls ld.so: at
// start-up only, never from a hook. Until then, and where glibc is older, only the modules of
// add_module() are known. Whether the lookup is there.
bool resolve_module_lookup() noexcept;

// Replaces the lookup, for programs that keep a table of their own, and for tests; nullptr: back to
// ours.
void set_module_finder(ModuleFinder finder) noexcept;

// The table for glibc before 2.35 and for what ld.so did not load, filled outside of hooks by one
// thread at a time; readers need no lock. Entries of removed modules are not used again: false when
// kMaxModules were ever added.
inline constexpr std::size_t kMaxModules = 4096;
bool add_module(std::uint64_t start, std::uint64_t end, std::uint64_t eh_frame_hdr) noexcept;
void remove_module(std::uint64_t start) noexcept;

bool find_module(std::uint64_t pc, Module& module) noexcept;

}  // namespace tidemark::tracer
