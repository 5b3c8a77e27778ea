// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"

namespace tidemark::reader {

class DebugServer;

// A function at an address, as debug information tells it.
struct DebugFrame {
  std::string function;        // demangled; empty: it has no name
  bool has_arguments = false;  // false: of a local function only the name is known
  std::string file;            // empty: unknown
  std::optional<std::uint32_t> line;
  bool inlined = false;
};

// The function symbol at or before an address.
struct NearestSymbol {
  std::string name;          // demangled
  std::uint64_t offset = 0;  // of the address from the symbol's
  bool contains = false;     // false: the address lies behind the symbol's end
  bool is_mangled = false;   // the file has it as C++ writes it: with scope and arguments
};

// An executable or shared library with its symbols and, where they are to be found, its debug
// information; elfutils behind a wall. Addresses are those of the file. Whatever is wrong in the
// file is as if it were absent. Not thread-safe.
class ObjectFile {
 public:
  // kNotFound, kPermission; kMalformed when it is no 64-bit executable or library, or damaged;
  // kGone when its build-id is not `build_id` (hexadecimal; empty: any will do).
  // `server` outlives it: its debug information may come from there, when it is first wanted.
  static Result<ObjectFile> open(const std::string& path, const std::string& build_id,
                                 DebugServer& server);

  ObjectFile(ObjectFile&& other) noexcept;
  ObjectFile& operator=(ObjectFile&& other) noexcept;
  ~ObjectFile();

  // Innermost inlined function first, the function that holds the code last; empty: not known.
  std::vector<DebugFrame> debug_frames(std::uint64_t address);
  std::optional<NearestSymbol> symbol(std::uint64_t address);

 private:
  class State;
  explicit ObjectFile(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace tidemark::reader
