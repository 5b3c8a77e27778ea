// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "profiler/inject/remote_memory.h"

namespace tidemark::inject {

struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool holds(std::uint64_t address) const { return address >= begin && address < end; }
  bool operator==(const AddressRange&) const = default;
};

// An ELF file that a process has mapped.
struct RemoteModule {
  std::string path;        // as the process sees it; raw bytes
  std::uint64_t bias = 0;  // what is added to the addresses in the file
  AddressRange range;
  std::vector<AddressRange> code;
  AddressRange dynamic;  // its dynamic section; empty: it has none

  bool has_code_at(std::uint64_t address) const;
};

// One line of /proc/PID/maps.
struct Mapping {
  AddressRange range;
  bool is_writable = false;
  bool is_executable = false;
  std::uint64_t offset = 0;  // in the file
  std::string name;
  bool is_readable = true;
  bool is_shared = false;
};

// What a process has mapped at one time.
struct AddressSpace {
  std::vector<Mapping> mappings;  // by address
  std::vector<RemoteModule> modules;

  const RemoteModule* module_at(std::uint64_t address) const;
  // The first module whose file name begins so: "libc.so.6", "ld-linux-x86-64.so".
  const RemoteModule* find(std::string_view file_name) const;
};
Result<AddressSpace> read_address_space(pid_t pid, const RemoteMemory& memory);
// The ELF files among these mappings that are there as code.
std::vector<RemoteModule> find_modules(const std::vector<Mapping>& mappings,
                                       const RemoteMemory& memory);
// Only the mappings.
Result<std::vector<Mapping>> read_mappings(pid_t pid);
// From the text of /proc/PID/maps.
std::vector<Mapping> parse_mappings(std::string_view maps);
// nullptr: there is none.
const Mapping* mapping_at(const std::vector<Mapping>& mappings, std::uint64_t address);

// What the dynamic section of a module leads to; 0: it has none.
struct DynamicTables {
  std::uint64_t symbols = 0;
  std::uint64_t strings = 0;
  std::uint64_t string_bytes = 0;
  std::uint64_t gnu_hash = 0;
  AddressRange relocations;       // Elf64_Rela, those that need no symbol left out
  AddressRange jump_relocations;  // of the PLT
};
std::optional<DynamicTables> read_dynamic_tables(const RemoteModule& module,
                                                 const RemoteMemory& memory);

// A function or variable that a module exports.
struct RemoteSymbol {
  std::string name;
  AddressRange range;  // in the process
};
// By address.
std::vector<RemoteSymbol> exported_symbols(const RemoteModule& module, const RemoteMemory& memory);
// One of them, found by its hash; 0: it has none of this name.
std::uint64_t find_exported(const RemoteModule& module, const RemoteMemory& memory,
                            std::string_view name);
// 0: it is not among them.
std::uint64_t address_of(const std::vector<RemoteSymbol>& functions, std::string_view name);
// The name of what an address is in; empty: of none.
std::string_view symbol_at(const std::vector<RemoteSymbol>& functions, std::uint64_t address);

}  // namespace tidemark::inject
