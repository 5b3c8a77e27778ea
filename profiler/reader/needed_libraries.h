// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::reader {

// The libraries that an ELF file names as needed (DT_NEEDED), not those that they need in turn.
// Empty for anything that is no 64-bit ELF file of this machine's byte order. Bounded, whatever the
// file claims.
std::vector<std::string> needed_libraries(const std::string& path);

// How the kernel starts a program.
struct ProgramLoader {
  bool is_native = false;   // a 64-bit ELF file for this machine
  std::string interpreter;  // the loader of its libraries (PT_INTERP); "": it is static
};
// nullopt: the file cannot be read, or is no ELF file.
std::optional<ProgramLoader> loader_of(const std::string& path);

// Whether this is the file name of an allocator that brings its own operator new: jemalloc,
// tcmalloc, mimalloc.
bool is_other_allocator(std::string_view library);

}  // namespace tidemark::reader
