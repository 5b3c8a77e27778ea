// SPDX-License-Identifier: Apache-2.0
// The only file that knows elfutils.
#include "profiler/reader/object_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <unordered_map>
#include <utility>

#include "common/fd.h"
#include "common/io.h"
#include "profiler/reader/debug_server.h"
#include "profiler/reader/elf_text.h"

namespace tidemark::reader {
namespace {

constexpr int kMostSymbols = 1 << 24;
constexpr int kMostDies = 1 << 24;
constexpr int kMostNestedFunctions = 64;
constexpr std::size_t kMostInlined = 256;

struct EndDwfl {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};
struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

std::string build_id_of(Dwfl_Module* module) {
  const unsigned char* bits = nullptr;
  GElf_Addr address = 0;
  const int count = dwfl_module_build_id(module, &bits, &address);
  return count > 0 ? hexadecimal({bits, static_cast<std::size_t>(count)}) : std::string();
}

std::string build_id_of(int descriptor) {
  std::string id;
  Elf* const elf = elf_begin(descriptor, ELF_C_READ_MMAP, nullptr);
  const void* bits = nullptr;
  if (const ssize_t count = elf == nullptr ? 0 : dwelf_elf_gnu_build_id(elf, &bits); count > 0) {
    id = hexadecimal({static_cast<const unsigned char*>(bits), static_cast<std::size_t>(count)});
  }
  elf_end(elf);
  return id;
}

// Below /usr/lib/debug, beside the file, then from the server: while there is one that answers.
// Where there is none elfutils would load its client all the same, with libraries of 8 MiB. What a
// debug file refers to in its turn has a path for a name, and a build-id of its own.
int find_debug_file(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base,
                    const char* file, const char* link, GElf_Word crc, char** found) {
  auto& server = *static_cast<DebugServer*>(*user);
  const std::string build_id = build_id_of(module);
  if (server.begin_search() && (server.is_named() || build_id.empty())) {
    return dwfl_standard_find_debuginfo(module, user, name, base, file, link, crc, found);
  }
  const int fd = dwfl_build_id_find_debuginfo(module, user, name, base, file, link, crc, found);
  if (fd >= 0) {
    return fd;
  }
  const std::string program = file == nullptr ? "" : file;
  const std::string wanted =
      link != nullptr ? link : program.substr(program.rfind('/') + 1) + ".debug";
  const bool is_own = !build_id.empty() && wanted.find('/') == std::string::npos;
  return open_debug_link(
      file, wanted, [&](int descriptor) { return !is_own || build_id_of(descriptor) == build_id; },
      found);
}

const Dwfl_Callbacks& callbacks() {
  static const Dwfl_Callbacks kCallbacks = {
      nullptr,  // find_elf: files are given by name
      find_debug_file, dwfl_offline_section_address,
      nullptr,  // debuginfo_path: the usual places
  };
  return kCallbacks;
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

// The path of a source file; relative ones are meant from where the compiler ran.
std::string path_of(Dwarf_Die* unit, const char* file) {
  Dwarf_Attribute attribute;
  const char* directory = nullptr;
  if (dwarf_attr(unit, DW_AT_comp_dir, &attribute) != nullptr) {
    directory = dwarf_formstring(&attribute);
  }
  return joined_path(directory != nullptr ? directory : "", file);
}

SourcePlace place_of_code(Dwarf_Die* unit, Dwarf_Addr address) {
  SourcePlace place;
  Dwarf_Line* line = dwarf_getsrc_die(unit, address);
  if (line == nullptr) {
    return place;
  }
  if (const char* file = dwarf_linesrc(line, nullptr, nullptr); file != nullptr) {
    place.file = path_of(unit, file);
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
      place.file = path_of(unit, name);
    }
  }
  const auto line = number_in(die, DW_AT_call_line);
  if (line && *line > 0 && *line <= 0xffff'ffff) {
    place.line = static_cast<std::uint32_t>(*line);
  }
  return place;
}

// A stretch of code of a function.
struct FunctionRange {
  Dwarf_Addr begin;
  Dwarf_Addr end;
  Dwarf_Die function;
};

template <typename Range>
void sort_by_begin(std::vector<Range>& ranges) {
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const Range& a, const Range& b) { return a.begin < b.begin; });
}

// Calls `visit` for each child. In a damaged file a sibling may stand before its sister.
template <typename Visit>
void for_each_child(Dwarf_Die& parent, Visit&& visit) {
  Dwarf_Die child;
  if (dwarf_child(&parent, &child) != 0) {
    return;
  }
  for (bool more = true; more;) {
    if (!visit(child)) {
      return;
    }
    Dwarf_Die next;
    more = dwarf_siblingof(&child, &next) == 0 && next.addr > child.addr;
    child = next;
  }
}

void add_ranges(Dwarf_Die& function, std::vector<FunctionRange>& ranges) {
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  for (std::ptrdiff_t at = dwarf_ranges(&function, 0, &base, &begin, &end); at > 0;
       at = dwarf_ranges(&function, at, &base, &begin, &end)) {
    ranges.push_back({begin, end, function});
  }
}

// All functions of a unit that have code of their own.
std::vector<FunctionRange> functions_of(Dwarf_Die unit) {
  std::vector<FunctionRange> functions;
  std::vector<Dwarf_Die> open = {unit};
  for (int looked_at = 0; !open.empty() && looked_at < kMostDies; ++looked_at) {
    Dwarf_Die parent = open.back();
    open.pop_back();
    for_each_child(parent, [&](Dwarf_Die& child) {
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_subprogram) {
        add_ranges(child, functions);
      }
      if (tag != DW_TAG_inlined_subroutine && dwarf_haschildren(&child) > 0) {
        open.push_back(child);
      }
      return true;
    });
  }
  sort_by_begin(functions);
  return functions;
}

const FunctionRange* function_at(const std::vector<FunctionRange>& functions, Dwarf_Addr address) {
  auto at = std::upper_bound(
      functions.begin(), functions.end(), address,
      [](Dwarf_Addr value, const FunctionRange& range) { return value < range.begin; });
  // Functions may lie within others; the one that begins last is the innermost.
  for (int steps = 0; at != functions.begin() && steps < kMostNestedFunctions; ++steps) {
    --at;
    if (address < at->end) {
      return &*at;
    }
  }
  return nullptr;
}

// The functions that were inlined at an address of `function`, outermost first.
std::vector<Dwarf_Die> inlined_at(Dwarf_Die function, Dwarf_Addr address) {
  std::vector<Dwarf_Die> chain;
  Dwarf_Die parent = function;
  for (bool deeper = true; deeper && chain.size() < kMostInlined;) {
    deeper = false;
    for_each_child(parent, [&](Dwarf_Die& child) {
      const int tag = dwarf_tag(&child);
      if ((tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) ||
          dwarf_haspc(&child, address) <= 0) {
        return true;
      }
      if (tag == DW_TAG_inlined_subroutine) {
        chain.push_back(child);
      }
      parent = child;
      deeper = true;
      return false;
    });
  }
  return chain;
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
  const std::vector<FunctionRange>& functions(const Dwarf_Die& unit);
  const DebugFrame& name(Dwarf_Die& function);

  std::optional<std::vector<SymbolPlace>> symbols;  // by address; none: not listed yet
  std::optional<std::vector<UnitRange>> units;      // likewise

 private:
  void list_units();

  // By where they stand in the file. Demangling and the search for a scope take long.
  std::unordered_map<const void*, std::vector<FunctionRange>> functions_;
  std::unordered_map<const void*, DebugFrame> names_;
};

const std::vector<FunctionRange>& ObjectFile::State::functions(const Dwarf_Die& unit) {
  const auto [place, is_new] = functions_.try_emplace(unit.addr);
  if (is_new) {
    place->second = functions_of(unit);
  }
  return place->second;
}

const DebugFrame& ObjectFile::State::name(Dwarf_Die& function) {
  Dwarf_Attribute attribute;
  Dwarf_Die origin = function;  // what is inlined in many places has its name in one
  if (dwarf_attr(&function, DW_AT_abstract_origin, &attribute) != nullptr &&
      dwarf_formref_die(&attribute, &origin) == nullptr) {
    origin = function;
  }
  const auto [place, is_new] = names_.try_emplace(origin.addr);
  if (is_new) {
    place->second = frame_of(&function);
  }
  return place->second;
}

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
  sort_by_begin(*units);
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

Result<ObjectFile> ObjectFile::open(const std::string& path, const std::string& build_id,
                                    DebugServer& server) {
  TIDEMARK_TRY_ASSIGN(auto file, open_file(path, O_RDONLY | O_NONBLOCK));
  TIDEMARK_TRY(check_is_program(file.get()));
  auto state = std::make_unique<State>();
  state->dwfl.reset(dwfl_begin(&callbacks()));
  if (!state->dwfl) {
    return Error{Errc::kUnsupported, "elfutils cannot be used"};
  }
  if (server.is_named()) {
    server.watch(dwfl_get_debuginfod_client(state->dwfl.get()));
  }
  dwfl_report_begin(state->dwfl.get());
  state->module = dwfl_report_offline(state->dwfl.get(), "", path.c_str(), file.get());
  if (state->module != nullptr) {
    file.release();  // it is elfutils' now
    void** user = nullptr;
    dwfl_module_info(state->module, &user, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    *user = &server;
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
  SourcePlace place = place_of_code(&unit, address);
  const auto add = [&frames, &place](DebugFrame frame, bool inlined) {
    frame.file = place.file;
    frame.line = place.line;
    frame.inlined = inlined;
    frames.push_back(std::move(frame));
  };
  const std::vector<FunctionRange>& functions = state_->functions(unit);
  const FunctionRange* range = function_at(functions, address);
  if (range != nullptr) {
    Dwarf_Die function = range->function;
    std::vector<Dwarf_Die> inlined = inlined_at(function, address);
    for (auto die = inlined.rbegin(); die != inlined.rend(); ++die) {
      add(state_->name(*die), true);
      place = place_of_call(&unit, &*die);
    }
    add(state_->name(function), false);
  } else if (!place.file.empty() && functions.empty()) {
    add({}, false);  // written in assembler: it has lines only
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
  const std::string plain = without_version(name);
  return NearestSymbol{demangled(plain.c_str()), offset, place.size == 0 || offset < place.size,
                       plain.starts_with("_Z")};
}

}  // namespace tidemark::reader
