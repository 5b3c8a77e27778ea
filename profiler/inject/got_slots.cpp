// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/got_slots.h"

#include <elf.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

namespace tidemark::inject {
namespace {

constexpr std::uint64_t kMostTableBytes = std::uint64_t{512} << 20U;

// The names of wire::kHookNames by the symbols of a module. The tables are read as a whole: those
// of torch have a hundred thousand symbols.
class HookSymbols {
 public:
  HookSymbols(const DynamicTables& tables, std::uint64_t symbols, const RemoteMemory& memory)
      : symbols_(memory.load_array<Elf64_Sym>(tables.symbols, symbols)
                     .value_or(std::vector<Elf64_Sym>())),
        strings_(
            memory.load_array<char>(tables.strings, std::min(tables.string_bytes, kMostTableBytes))
                .value_or(std::vector<char>())) {
    for (std::size_t i = 0; i < wire::kHooks; ++i) {
      numbers_.emplace(wire::kHookNames[i], i);
    }
  }

  // The number of the hook that a symbol is the name of; nullopt: of none.
  std::optional<std::size_t> find(std::uint64_t symbol) const {
    if (symbol >= symbols_.size() || symbols_[symbol].st_name >= strings_.size()) {
      return std::nullopt;
    }
    const std::string_view begin = std::string_view(strings_.data(), strings_.size())
                                       .substr(symbols_[symbol].st_name, kLongestName);
    const auto number = numbers_.find(begin.substr(0, begin.find('\0')));
    return number == numbers_.end() ? std::nullopt : std::optional(number->second);
  }

 private:
  static constexpr std::size_t kLongestName = 32;

  std::vector<Elf64_Sym> symbols_;
  std::vector<char> strings_;
  std::unordered_map<std::string_view, std::size_t> numbers_;
};

// Whether a relocation is of an address of a function, in a place that can be written at once.
bool may_be_slot(const Elf64_Rela& relocation, const RemoteModule& module) {
  const std::uint64_t type = ELF64_R_TYPE(relocation.r_info);
  const std::uint64_t address = module.bias + relocation.r_offset;
  const bool is_address = type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ||
                          (type == R_X86_64_64 && relocation.r_addend == 0);
  return is_address && address % sizeof(std::uint64_t) == 0 && module.range.holds(address);
}

}  // namespace

ModuleSlots read_slots(const RemoteModule& module, const RemoteMemory& memory,
                       const HookAddresses& real, const AddressRange& tracer,
                       const RemoteModule& program) {
  ModuleSlots slots;
  const auto tables = read_dynamic_tables(module, memory);
  if (!tables) {
    return slots;
  }
  std::vector<Elf64_Rela> relocations;
  std::uint64_t symbol_count = 0;
  for (const AddressRange& table : {tables->jump_relocations, tables->relocations}) {
    const std::uint64_t bytes = table.end > table.begin ? table.end - table.begin : 0;
    const auto all = memory.load_array<Elf64_Rela>(
        table.begin, std::min(bytes, kMostTableBytes) / sizeof(Elf64_Rela));
    for (const Elf64_Rela& each : all ? *all : std::vector<Elf64_Rela>()) {
      const std::uint64_t symbol = ELF64_R_SYM(each.r_info);
      if (may_be_slot(each, module) && symbol < kMostTableBytes / sizeof(Elf64_Sym)) {
        relocations.push_back(each);
        symbol_count = std::max(symbol_count, symbol + 1);
      }
    }
  }
  const HookSymbols symbols(*tables, symbol_count, memory);
  for (const Elf64_Rela& each : relocations) {
    const std::uint64_t address = module.bias + each.r_offset;
    const auto hook = symbols.find(ELF64_R_SYM(each.r_info));
    const auto value = hook ? memory.load<std::uint64_t>(address) : std::nullopt;
    if (!value || *value == 0) {
      continue;  // not one of ours, or a weak function that is not there
    }
    // A slot of the PLT leads back into its module until the function was called once.
    const bool is_lazy =
        ELF64_R_TYPE(each.r_info) == R_X86_64_JUMP_SLOT && module.has_code_at(*value);
    if (tracer.holds(*value)) {
      slots.hooked.push_back({address, *value, *hook});
    } else if (real[*hook] != 0 && *value == real[*hook]) {
      slots.real.push_back({address, *value, *hook});
    } else if (real[*hook] != 0 && is_lazy) {
      slots.lazy.push_back({address, *value, *hook});
    } else if (!program.has_code_at(*value)) {
      ++slots.foreign;
    }
  }
  return slots;
}

std::vector<GotSlot> find_python_tables(const RemoteModule& interpreter,
                                        const std::vector<Mapping>& mappings,
                                        const RemoteMemory& memory, const HookAddresses& from) {
  constexpr std::uint64_t kMostBytes = 64U << 20U;
  std::vector<GotSlot> slots;
  const std::span<const std::uint64_t> wanted(from.data() + wire::kHooks, wire::kPythonHooks);
  for (const Mapping& mapping : mappings) {
    if (wanted[0] == 0 || !mapping.is_writable || !interpreter.range.holds(mapping.range.begin)) {
      continue;
    }
    const std::uint64_t bytes = std::min(mapping.range.end - mapping.range.begin, kMostBytes);
    const auto words = memory.load_array<std::uint64_t>(mapping.range.begin, bytes / 8);
    if (!words) {
      continue;
    }
    auto at = words->begin();
    while ((at = std::search(at, words->end(), wanted.begin(), wanted.end())) != words->end()) {
      const auto first = static_cast<std::uint64_t>(at - words->begin());
      for (std::size_t i = 0; i < wire::kPythonHooks; ++i, ++at) {
        slots.push_back({mapping.range.begin + 8 * (first + i), wanted[i], wire::kHooks + i});
      }
    }
  }
  return slots;
}

Result<std::size_t> write_slots(const std::vector<GotSlot>& slots, const HookAddresses& to,
                                const RemoteMemory& memory) {
  std::size_t written = 0;
  for (const GotSlot& slot : slots) {
    const std::uint64_t value = to[slot.hook];
    if (value == 0 || memory.load<std::uint64_t>(slot.address) != slot.value) {
      continue;
    }
    TIDEMARK_TRY(
        memory.write(slot.address, {reinterpret_cast<const char*>(&value), sizeof(value)}));
    ++written;
  }
  return written;
}

}  // namespace tidemark::inject
