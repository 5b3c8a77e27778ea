// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/remote_modules.h"

#include <elf.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_smaps.h"
#include "profiler/inject/traced_thread.h"

namespace tidemark::inject {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kMostMapsBytes = 64U << 20U;
constexpr std::uint64_t kMostSymbols = 4U << 20U;
constexpr std::uint64_t kMostDynamicBytes = 16U << 10U;
constexpr std::uint64_t kMostNameBytes = 256;
constexpr std::size_t kMostNamesBytes = 64U << 20U;

std::uint64_t offset_of(std::string_view line) {
  monitor::take_word(line);
  monitor::take_word(line);
  const std::string_view word = monitor::take_word(line);
  std::uint64_t offset = 0;
  std::from_chars(word.data(), word.data() + word.size(), offset, 16);
  return offset;
}

// The module whose file begins at this mapping; nullopt: it is no ELF file.
std::optional<RemoteModule> read_module(const Mapping& first, const RemoteMemory& memory) {
  constexpr std::uint16_t kMostSegments = 64;
  const auto head = memory.load<Elf64_Ehdr>(first.range.begin);
  if (!head || std::string_view(reinterpret_cast<const char*>(head->e_ident), SELFMAG) != ELFMAG ||
      head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_phnum > kMostSegments ||
      head->e_phentsize != sizeof(Elf64_Phdr)) {
    return std::nullopt;
  }
  const auto segments =
      memory.load_array<Elf64_Phdr>(first.range.begin + head->e_phoff, head->e_phnum);
  if (!segments) {
    return std::nullopt;
  }
  RemoteModule module;
  module.path = first.name;
  bool is_first = true;
  for (const Elf64_Phdr& segment : *segments) {
    if (segment.p_type != PT_LOAD) {
      continue;
    }
    if (is_first) {
      module.bias = first.range.begin - segment.p_vaddr / kPage * kPage;
      module.range.begin = first.range.begin;
      is_first = false;
    }
    const AddressRange loaded{module.bias + segment.p_vaddr,
                              module.bias + segment.p_vaddr + segment.p_memsz};
    module.range.end = std::max(module.range.end, loaded.end);
    if ((segment.p_flags & PF_X) != 0) {
      module.code.push_back(loaded);
    }
  }
  for (const Elf64_Phdr& segment : *segments) {
    if (segment.p_type == PT_DYNAMIC) {
      const std::uint64_t begin = module.bias + segment.p_vaddr;
      module.dynamic = {begin, begin + std::min(segment.p_memsz, kMostDynamicBytes)};
    }
  }
  return is_first ? std::nullopt : std::optional(std::move(module));
}

bool is_export(const Elf64_Sym& symbol) {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 &&
         (type == STT_FUNC || type == STT_OBJECT);
}

// Whether it is there as code: not a file that somebody has mapped to read it.
bool is_loaded(const RemoteModule& module, const std::string& file,
               const std::vector<Mapping>& mappings) {
  return std::all_of(module.code.begin(), module.code.end(), [&](const AddressRange& part) {
    const Mapping* const mapping = mapping_at(mappings, part.begin);
    return mapping != nullptr && mapping->is_executable && mapping->name == file;
  });
}

// What a table of DT_GNU_HASH begins with.
struct HashHead {
  std::uint32_t buckets;
  std::uint32_t first_symbol;
  std::uint32_t bloom_words;
  std::uint32_t bloom_shift;
};

std::optional<HashHead> read_hash_head(std::uint64_t gnu_hash, const RemoteMemory& memory) {
  const auto head = memory.load<HashHead>(gnu_hash);
  const bool is_sound = head && head->buckets > 0 && head->buckets <= kMostSymbols &&
                        head->bloom_words <= kMostSymbols;
  return is_sound ? head : std::nullopt;
}

std::uint64_t buckets_at(std::uint64_t gnu_hash, const HashHead& head) {
  return gnu_hash + sizeof(HashHead) + std::uint64_t{8} * head.bloom_words;
}

// The number of symbols, which only the hash table tells: its longest chain ends with the last one.
std::uint64_t count_symbols(std::uint64_t gnu_hash, const RemoteMemory& memory) {
  const auto head = read_hash_head(gnu_hash, memory);
  if (!head) {
    return 0;
  }
  const std::uint64_t at = buckets_at(gnu_hash, *head);
  const auto buckets = memory.load_array<std::uint32_t>(at, head->buckets);
  if (!buckets || buckets->empty()) {
    return 0;
  }
  std::uint64_t last = *std::max_element(buckets->begin(), buckets->end());
  if (last < head->first_symbol) {
    return head->first_symbol;
  }
  const std::uint64_t chains = at + std::uint64_t{4} * head->buckets;
  for (; last < kMostSymbols; ++last) {
    const auto hash = memory.load<std::uint32_t>(chains + 4 * (last - head->first_symbol));
    if (!hash || (*hash & 1U) != 0) {
      return last + 1;
    }
  }
  return 0;
}

}  // namespace

bool RemoteModule::has_code_at(std::uint64_t address) const {
  return std::any_of(code.begin(), code.end(),
                     [&](const AddressRange& part) { return part.holds(address); });
}

std::vector<Mapping> parse_mappings(std::string_view maps) {
  std::vector<Mapping> mappings;
  std::string_view line;
  while (monitor::take_line(maps, line)) {
    if (const auto head = monitor::parse_mapping_head(line)) {
      std::string_view rest = line;
      monitor::take_word(rest);
      const std::string_view rights = monitor::take_word(rest);
      mappings.push_back({{head->begin, head->end},
                          rights.size() > 1 && rights[1] == 'w',
                          rights.size() > 2 && rights[2] == 'x',
                          offset_of(line),
                          monitor::undo_octal_escapes(head->name),
                          !rights.empty() && rights[0] == 'r',
                          rights.size() > 3 && rights[3] == 's'});
    }
  }
  return mappings;
}

Result<std::vector<Mapping>> read_mappings(pid_t pid) {
  TIDEMARK_TRY_ASSIGN(auto maps, read_file(fmt::format("/proc/{}/maps", pid), kMostMapsBytes));
  // A first thread that has exited before the others shows none.
  for (const pid_t tid : maps.empty() ? threads_of(pid) : std::vector<pid_t>()) {
    if (auto same = read_file(fmt::format("/proc/{}/task/{}/maps", pid, tid), kMostMapsBytes);
        same && maps.empty()) {
      maps = *std::move(same);
    }
  }
  return parse_mappings(maps);
}

Result<AddressSpace> read_address_space(pid_t pid, const RemoteMemory& memory) {
  AddressSpace space;
  TIDEMARK_TRY_ASSIGN(space.mappings, read_mappings(pid));
  space.modules = find_modules(space.mappings, memory);
  return space;
}

std::vector<RemoteModule> find_modules(const std::vector<Mapping>& mappings,
                                       const RemoteMemory& memory) {
  std::vector<RemoteModule> modules;
  for (const Mapping& mapping : mappings) {
    if (mapping.offset != 0 || !mapping.name.starts_with('/')) {
      continue;
    }
    if (auto module = read_module(mapping, memory);
        module && is_loaded(*module, mapping.name, mappings)) {
      modules.push_back(*std::move(module));
    }
  }
  return modules;
}

const Mapping* mapping_at(const std::vector<Mapping>& mappings, std::uint64_t address) {
  const auto next = std::upper_bound(
      mappings.begin(), mappings.end(), address,
      [](std::uint64_t at, const Mapping& mapping) { return at < mapping.range.end; });
  return next != mappings.end() && next->range.holds(address) ? &*next : nullptr;
}

const RemoteModule* AddressSpace::module_at(std::uint64_t address) const {
  const auto found = std::find_if(modules.begin(), modules.end(), [&](const RemoteModule& module) {
    return module.range.holds(address);
  });
  return found == modules.end() ? nullptr : &*found;
}

const RemoteModule* AddressSpace::find(std::string_view file_name) const {
  const auto found = std::find_if(modules.begin(), modules.end(), [&](const RemoteModule& module) {
    return basename_of(module.path).starts_with(file_name);
  });
  return found == modules.end() ? nullptr : &*found;
}

std::optional<DynamicTables> read_dynamic_tables(const RemoteModule& module,
                                                 const RemoteMemory& memory) {
  const std::uint64_t bytes = module.dynamic.end - module.dynamic.begin;
  const auto entries =
      memory.load_array<Elf64_Dyn>(module.dynamic.begin, bytes / sizeof(Elf64_Dyn));
  if (!entries) {
    return std::nullopt;
  }
  DynamicTables tables;
  std::uint64_t relative = 0;
  std::uint64_t jump_bytes = 0;
  std::uint64_t relocation_bytes = 0;
  bool has_addends = true;
  // The dynamic linker adds the bias to the addresses in place, but not everywhere.
  const auto address = [&](const Elf64_Dyn& entry) {
    return entry.d_un.d_ptr < module.bias ? entry.d_un.d_ptr + module.bias : entry.d_un.d_ptr;
  };
  for (const Elf64_Dyn& entry : *entries) {
    switch (entry.d_tag) {
      case DT_NULL:
        break;
      case DT_SYMTAB:
        tables.symbols = address(entry);
        continue;
      case DT_STRTAB:
        tables.strings = address(entry);
        continue;
      case DT_STRSZ:
        tables.string_bytes = entry.d_un.d_val;
        continue;
      case DT_GNU_HASH:
        tables.gnu_hash = address(entry);
        continue;
      case DT_RELA:
        tables.relocations.begin = address(entry);
        continue;
      case DT_RELASZ:
        relocation_bytes = entry.d_un.d_val;
        continue;
      case DT_RELACOUNT:
        relative = entry.d_un.d_val;
        continue;
      case DT_JMPREL:
        tables.jump_relocations.begin = address(entry);
        continue;
      case DT_PLTRELSZ:
        jump_bytes = entry.d_un.d_val;
        continue;
      case DT_PLTREL:
        has_addends = entry.d_un.d_val == DT_RELA;
        continue;
      default:
        continue;
    }
    break;
  }
  const auto end_of = [](AddressRange& range, std::uint64_t length) {
    range.end = range.begin == 0 ? 0 : range.begin + length;
  };
  end_of(tables.relocations, relocation_bytes);
  end_of(tables.jump_relocations, has_addends ? jump_bytes : 0);
  const std::uint64_t skipped =
      std::min(relative, relocation_bytes / sizeof(Elf64_Rela)) * sizeof(Elf64_Rela);
  tables.relocations.begin += tables.relocations.begin == 0 ? 0 : skipped;
  return tables.symbols == 0 || tables.strings == 0 ? std::nullopt : std::optional(tables);
}

std::vector<RemoteSymbol> exported_symbols(const RemoteModule& module, const RemoteMemory& memory) {
  std::vector<RemoteSymbol> functions;
  const auto tables = read_dynamic_tables(module, memory);
  const std::uint64_t count =
      tables && tables->gnu_hash != 0 ? count_symbols(tables->gnu_hash, memory) : 0;
  const auto symbols = memory.load_array<Elf64_Sym>(tables ? tables->symbols : 0, count);
  if (!symbols || count == 0) {
    return functions;
  }
  std::size_t name_bytes = 0;
  for (const Elf64_Sym& symbol : *symbols) {
    if (!is_export(symbol) || name_bytes > kMostNamesBytes) {
      continue;
    }
    const std::uint64_t begin = module.bias + symbol.st_value;
    functions.push_back({memory.text(tables->strings + symbol.st_name, kMostNameBytes),
                         {begin, begin + symbol.st_size}});
    name_bytes += functions.back().name.size();
  }
  std::stable_sort(
      functions.begin(), functions.end(),
      [](const RemoteSymbol& a, const RemoteSymbol& b) { return a.range.begin < b.range.begin; });
  return functions;
}

std::uint64_t find_exported(const RemoteModule& module, const RemoteMemory& memory,
                            std::string_view name) {
  const auto tables = read_dynamic_tables(module, memory);
  const auto head =
      tables && tables->gnu_hash != 0 ? read_hash_head(tables->gnu_hash, memory) : std::nullopt;
  if (!head) {
    return 0;
  }
  std::uint32_t hash = 5381;
  for (const char letter : name) {
    hash = hash * 33 + static_cast<unsigned char>(letter);
  }
  const std::uint64_t buckets = buckets_at(tables->gnu_hash, *head);
  const std::uint64_t chains = buckets + std::uint64_t{4} * head->buckets;
  const auto first =
      memory.load<std::uint32_t>(buckets + std::uint64_t{4} * (hash % head->buckets));
  if (!first || *first < head->first_symbol) {
    return 0;
  }
  for (std::uint64_t i = *first; i < kMostSymbols; ++i) {
    const auto of_this = memory.load<std::uint32_t>(chains + 4 * (i - head->first_symbol));
    const auto symbol = memory.load<Elf64_Sym>(tables->symbols + i * sizeof(Elf64_Sym));
    if (!of_this || !symbol) {
      return 0;
    }
    if ((*of_this | 1U) == (hash | 1U) && is_export(*symbol) &&
        memory.text(tables->strings + symbol->st_name, name.size() + 1) == name) {
      return module.bias + symbol->st_value;
    }
    if ((*of_this & 1U) != 0) {
      return 0;
    }
  }
  return 0;
}

std::uint64_t address_of(const std::vector<RemoteSymbol>& functions, std::string_view name) {
  const auto found =
      std::find_if(functions.begin(), functions.end(),
                   [&](const RemoteSymbol& function) { return function.name == name; });
  return found == functions.end() ? 0 : found->range.begin;
}

std::string_view symbol_at(const std::vector<RemoteSymbol>& functions, std::uint64_t address) {
  const auto next = std::upper_bound(
      functions.begin(), functions.end(), address,
      [](std::uint64_t at, const RemoteSymbol& function) { return at < function.range.begin; });
  for (auto it = std::make_reverse_iterator(next); it != functions.rend(); ++it) {
    if (it->range.holds(address)) {
      return it->name;
    }
    if (it->range.begin != std::prev(next)->range.begin) {  // one address has several names
      break;
    }
  }
  return "";
}

}  // namespace tidemark::inject
