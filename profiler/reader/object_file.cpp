// SPDX-License-Identifier: Apache-2.0
// The only file that knows elfutils.
#include "profiler/reader/object_file.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include "common/fd.h"
#include "common/io.h"

namespace tidemark::reader {
namespace {

constexpr std::size_t kMostMangledBytes = 16384;
constexpr int kMostSymbols = 1 << 24;

struct EndDwfl {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};
struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

std::string demangled(const char* name) {
  if (std::strncmp(name, "_Z", 2) != 0 || ::strnlen(name, kMostMangledBytes) == kMostMangledBytes) {
    return name;
  }
  int status = 0;
  const std::unique_ptr<char, Free> text(abi::__cxa_demangle(name, nullptr, nullptr, &status));
  return status == 0 && text ? std::string(text.get()) : std::string(name);
}

const Dwfl_Callbacks& callbacks() {
  static const Dwfl_Callbacks kCallbacks = {
      nullptr,                       // find_elf: files are given by name
      dwfl_standard_find_debuginfo,  // below /usr/lib/debug, beside the file, from debuginfod
      dwfl_offline_section_address,
      nullptr,  // debuginfo_path: the usual places
  };
  return kCallbacks;
}

// Keeps elfutils from what it would also open: archives, object files, compressed images.
Status check_is_program(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return system_error("object file", errno);
  }
  Elf64_Ehdr header{};
  const std::span<char> bytes(reinterpret_cast<char*>(&header), sizeof header);
  const auto got = S_ISREG(status.st_mode) ? pread_full(fd, bytes) : Result<std::size_t>(0);
  if (!got || *got != sizeof header || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      (header.e_type != ET_EXEC && header.e_type != ET_DYN)) {
    return Error{Errc::kMalformed, "not a 64-bit program or library"};
  }
  return ok();
}

std::string build_id_of(Dwfl_Module* module) {
  const unsigned char* bits = nullptr;
  GElf_Addr address = 0;
  const int count = dwfl_module_build_id(module, &bits, &address);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += kDigits[bits[i] >> 4U];
    text += kDigits[bits[i] & 15U];
  }
  return text;
}

// A function symbol; its name is looked up when it is wanted.
struct SymbolPlace {
  std::uint64_t address;
  std::uint64_t size;
  int index;
};

// A stretch of code of a compilation unit, in the numbering of the debug information.
struct UnitRange {
  Dwarf_Addr begin;
  Dwarf_Addr end;
  Dwarf_Die unit;
};

// What stands before the name of a function: "outer::(anonymous namespace)::Type::".
std::string scope_of(Dwarf_Die* function) {
  // The body refers to its declaration, and that one stands within its class or namespace.
  Dwarf_Die declared = *function;
  for (const unsigned which : {DW_AT_abstract_origin, DW_AT_specification}) {
    Dwarf_Attribute attribute;
    Dwarf_Die other;
    if (dwarf_attr(&declared, which, &attribute) != nullptr &&
        dwarf_formref_die(&attribute, &other) != nullptr) {
      declared = other;
    }
  }
  Dwarf_Die* around = nullptr;
  const int count = dwarf_getscopes_die(&declared, &around);
  const std::unique_ptr<Dwarf_Die, Free> memory(around);
  std::string scope;
  for (int i = 1; i < count; ++i) {
    const int tag = dwarf_tag(&around[i]);
    if (tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
        tag == DW_TAG_union_type) {
      const char* name = dwarf_diename(&around[i]);
      const char* nameless = tag == DW_TAG_namespace ? "(anonymous namespace)" : "(unnamed)";
      scope.insert(0, std::string(name != nullptr ? name : nameless) + "::");
    }
  }
  return scope;
}

DebugFrame frame_of(Dwarf_Die* die) {
  DebugFrame frame;
  Dwarf_Attribute attribute;
  for (const unsigned which : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (dwarf_attr_integrate(die, which, &attribute) != nullptr) {
      if (const char* name = dwarf_formstring(&attribute); name != nullptr) {
        frame.function = demangled(name);
        frame.has_arguments = true;
        return frame;
      }
    }
  }
  // Local functions have no other name.
  if (const char* name = dwarf_diename(die); name != nullptr) {
    frame.function = scope_of(die) + name;
  }
  return frame;
}

struct SourcePlace {
  std::string file;
  std::optional<std::uint32_t> line;
};

SourcePlace place_of_code(Dwarf_Die* unit, Dwarf_Addr address) {
  SourcePlace place;
  Dwarf_Line* line = dwarf_getsrc_die(unit, address);
  if (line == nullptr) {
    return place;
  }
  if (const char* file = dwarf_linesrc(line, nullptr, nullptr); file != nullptr) {
    place.file = file;
  }
  int number = 0;
  if (dwarf_lineno(line, &number) == 0 && number > 0) {
    place.line = static_cast<std::uint32_t>(number);
  }
  return place;
}

std::optional<Dwarf_Word> number_in(Dwarf_Die* die, unsigned which) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr(die, which, &attribute) == nullptr || dwarf_formudata(&attribute, &value) != 0) {
    return std::nullopt;
  }
  return value;
}

// Where the inlined function `die` was called from.
SourcePlace place_of_call(Dwarf_Die* unit, Dwarf_Die* die) {
  SourcePlace place;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  const auto file = number_in(die, DW_AT_call_file);
  if (file && dwarf_getsrcfiles(unit, &files, &count) == 0 && *file < count) {
    if (const char* name = dwarf_filesrc(files, *file, nullptr, nullptr); name != nullptr) {
      place.file = name;
    }
  }
  const auto line = number_in(die, DW_AT_call_line);
  if (line && *line > 0 && *line <= 0xffff'ffff) {
    place.line = static_cast<std::uint32_t>(*line);
  }
  return place;
}

// The dies around an address, innermost first, from the one that it is in out to the unit.
std::span<Dwarf_Die> scopes_at(Dwarf_Die* unit, Dwarf_Addr address,
                               std::unique_ptr<Dwarf_Die, Free>& memory) {
  Dwarf_Die* lexical = nullptr;
  if (dwarf_getscopes(unit, address, &lexical) <= 0) {
    return {};
  }
  const std::unique_ptr<Dwarf_Die, Free> innermost(lexical);
  // Around an inlined function this is the code that it was inlined into; the list above goes on
  // with where it was written.
  Dwarf_Die* physical = nullptr;
  const int count = dwarf_getscopes_die(innermost.get(), &physical);
  memory.reset(physical);
  return count > 0 ? std::span(physical, static_cast<std::size_t>(count)) : std::span<Dwarf_Die>();
}

}  // namespace

class ObjectFile::State {
 public:
  std::unique_ptr<Dwfl, EndDwfl> dwfl;
  Dwfl_Module* module = nullptr;
  Dwarf_Addr bias = 0;  // address in elfutils' view minus address in the file

  void list_symbols();
  // The unit with the code at `address`; `address` becomes that of the debug information.
  bool find_unit(Dwarf_Addr& address, Dwarf_Die& unit);
  const char* symbol_name(int index) const;

  std::optional<std::vector<SymbolPlace>> symbols;  // by address; none: not listed yet
  std::optional<std::vector<UnitRange>> units;      // likewise

 private:
  void list_units();
};

void ObjectFile::State::list_symbols() {
  symbols.emplace();
  const int count = std::min(dwfl_module_getsymtab(module), kMostSymbols);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr address = 0;
    GElf_Word section = SHN_UNDEF;
    const char* name =
        dwfl_module_getsym_info(module, i, &symbol, &address, &section, nullptr, nullptr);
    const unsigned type = GELF_ST_TYPE(symbol.st_info);
    if (name != nullptr && *name != '\0' && section != SHN_UNDEF &&
        (type == STT_FUNC || type == STT_GNU_IFUNC)) {
      symbols->push_back({address - bias, symbol.st_size, i});
    }
  }
  // Of several names for one address the last wins: global ones, which come after the local ones.
  std::stable_sort(
      symbols->begin(), symbols->end(),
      [](const SymbolPlace& a, const SymbolPlace& b) { return a.address < b.address; });
}

const char* ObjectFile::State::symbol_name(int index) const {
  GElf_Sym symbol;
  GElf_Addr address = 0;
  return dwfl_module_getsym_info(module, index, &symbol, &address, nullptr, nullptr, nullptr);
}

// For debug information without .debug_aranges, which clang leaves out.
void ObjectFile::State::list_units() {
  units.emplace();
  Dwarf_Addr debug_bias = 0;
  for (Dwarf_Die* unit = dwfl_module_nextcu(module, nullptr, &debug_bias); unit != nullptr;
       unit = dwfl_module_nextcu(module, unit, &debug_bias)) {
    Dwarf_Addr base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    for (std::ptrdiff_t at = dwarf_ranges(unit, 0, &base, &begin, &end); at > 0;
         at = dwarf_ranges(unit, at, &base, &begin, &end)) {
      units->push_back({begin + debug_bias, end + debug_bias, *unit});
    }
  }
  std::sort(units->begin(), units->end(),
            [](const UnitRange& a, const UnitRange& b) { return a.begin < b.begin; });
}

bool ObjectFile::State::find_unit(Dwarf_Addr& address, Dwarf_Die& unit) {
  Dwarf_Addr debug_bias = 0;
  if (dwfl_module_getdwarf(module, &debug_bias) == nullptr) {
    return false;
  }
  const Dwarf_Addr wanted = address + bias;
  address = wanted - debug_bias;
  Dwarf_Addr same_bias = 0;
  if (const Dwarf_Die* found = dwfl_module_addrdie(module, wanted, &same_bias); found != nullptr) {
    unit = *found;
    return true;
  }
  if (!units) {
    list_units();
  }
  auto after = std::upper_bound(
      units->begin(), units->end(), wanted,
      [](Dwarf_Addr value, const UnitRange& range) { return value < range.begin; });
  if (after == units->begin() || wanted >= std::prev(after)->end) {
    return false;
  }
  unit = std::prev(after)->unit;
  return true;
}

ObjectFile::ObjectFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
ObjectFile::ObjectFile(ObjectFile&& other) noexcept = default;
ObjectFile& ObjectFile::operator=(ObjectFile&& other) noexcept = default;
ObjectFile::~ObjectFile() = default;

Result<ObjectFile> ObjectFile::open(const std::string& path, const std::string& build_id) {
  auto file = open_file(path, O_RDONLY | O_NONBLOCK);
  if (!file) {
    return file.error();
  }
  if (auto fine = check_is_program(file->get()); !fine) {
    return fine.error();
  }
  auto state = std::make_unique<State>();
  state->dwfl.reset(dwfl_begin(&callbacks()));
  if (!state->dwfl) {
    return Error{Errc::kUnsupported, "elfutils cannot be used"};
  }
  dwfl_report_begin(state->dwfl.get());
  state->module = dwfl_report_offline(state->dwfl.get(), "", path.c_str(), file->get());
  if (state->module != nullptr) {
    file->release();  // it is elfutils' now
  }
  dwfl_report_end(state->dwfl.get(), nullptr, nullptr);
  if (state->module == nullptr || dwfl_module_getelf(state->module, &state->bias) == nullptr) {
    return Error{Errc::kMalformed, "the file is damaged"};
  }
  if (!build_id.empty() && build_id_of(state->module) != build_id) {
    return Error{Errc::kGone, "the file has another build-id than the one that was mapped"};
  }
  return ObjectFile(std::move(state));
}

std::vector<DebugFrame> ObjectFile::debug_frames(std::uint64_t file_address) {
  std::vector<DebugFrame> frames;
  Dwarf_Addr address = file_address;
  Dwarf_Die unit;
  if (!state_->find_unit(address, unit)) {
    return frames;
  }
  std::unique_ptr<Dwarf_Die, Free> memory;
  SourcePlace place = place_of_code(&unit, address);
  const auto add = [&frames, &place](DebugFrame frame, bool inlined) {
    frame.file = place.file;
    frame.line = place.line;
    frame.inlined = inlined;
    frames.push_back(std::move(frame));
  };
  for (Dwarf_Die& die : scopes_at(&unit, address, memory)) {
    const int tag = dwarf_tag(&die);
    if (tag == DW_TAG_inlined_subroutine) {
      add(frame_of(&die), true);
      place = place_of_call(&unit, &die);
    } else if (tag == DW_TAG_subprogram || tag == DW_TAG_entry_point) {
      add(frame_of(&die), false);
      return frames;
    }
  }
  if (!place.file.empty()) {  // code without a function around it, or a unit with lines only
    add({}, false);
  }
  return frames;
}

std::optional<NearestSymbol> ObjectFile::symbol(std::uint64_t address) {
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  dwfl_module_info(state_->module, nullptr, &begin, &end, nullptr, nullptr, nullptr, nullptr);
  if (address < begin - state_->bias || address >= end - state_->bias) {
    return std::nullopt;
  }
  if (!state_->symbols) {
    state_->list_symbols();
  }
  const std::vector<SymbolPlace>& symbols = *state_->symbols;
  const auto after = std::upper_bound(
      symbols.begin(), symbols.end(), address,
      [](std::uint64_t value, const SymbolPlace& place) { return value < place.address; });
  if (after == symbols.begin()) {
    return std::nullopt;
  }
  const SymbolPlace& place = *std::prev(after);
  const char* name = state_->symbol_name(place.index);
  if (name == nullptr) {
    return std::nullopt;
  }
  const std::uint64_t offset = address - place.address;
  // What is written in assembler may have no size: then it reaches up to the next symbol.
  return NearestSymbol{demangled(name), offset, place.size == 0 || offset < place.size};
}

}  // namespace tidemark::reader
