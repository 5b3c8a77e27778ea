// SPDX-License-Identifier: Apache-2.0
// The memory of a process that is attached to is a stranger's. By its first byte the input is: the
// text of its mappings; all that is mapped, in the place of a module; patches (offset in 2 bytes,
// length in 1, content) of a valid module; or the extended state of a thread. Nothing may make the
// reader crash, hang, or take more memory than there is to be read.
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/check.h"
#include "profiler/inject/extended_state.h"
#include "profiler/inject/got_slots.h"
#include "profiler/inject/remote_call.h"
#include "profiler/inject/remote_memory.h"
#include "profiler/inject/remote_modules.h"

namespace {

using namespace tidemark::inject;
using tidemark::Fd;

constexpr std::uint64_t kBegin = 0x10000;
constexpr std::size_t kBytes = 0x2000;
constexpr std::string_view kMaps =
    "10000-12000 rwxp 00000000 fd:00 12  /lib/libc.so.6\n"
    "20000-30000 rw-p 00000000 00:00 0    [stack]\n";
constexpr std::string_view kExported = "exported";
// The real functions, by the numbers of their names; all at the same place.
constexpr std::uint64_t kReal = kBegin + 0x1f00;
constexpr AddressRange kTracer = {0x7f0000, 0x7f1000};

// Parts of the module, from its beginning.
constexpr std::size_t kSegmentsAt = sizeof(Elf64_Ehdr);
constexpr std::size_t kDynamicAt = 0x200;
constexpr std::size_t kSymbolsAt = 0x400;
constexpr std::size_t kStringsAt = 0x600;
constexpr std::size_t kHashAt = 0x700;
constexpr std::size_t kRelocationsAt = 0x800;
constexpr std::size_t kJumpsAt = 0xa00;
constexpr std::size_t kSlotsAt = 0x1000;
constexpr std::size_t kFunctionAt = 0x1800;

template <typename T>
void put_at(std::string& bytes, std::size_t offset, const std::vector<T>& rows) {
  std::memcpy(bytes.data() + offset, rows.data(), rows.size() * sizeof(T));
}

std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char letter : name) {
    hash = hash * 33 + static_cast<unsigned char>(letter);
  }
  return hash;
}

// A library that calls malloc by the PLT and keeps an address of free, and exports a function.
const std::string& valid_module() {
  static const std::string kModule = [] {
    std::string bytes(kBytes, '\0');
    Elf64_Ehdr head = {};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_phoff = kSegmentsAt;
    head.e_phentsize = sizeof(Elf64_Phdr);
    head.e_phnum = 2;
    put_at<Elf64_Ehdr>(bytes, 0, {head});
    Elf64_Phdr loaded = {};
    loaded.p_type = PT_LOAD;
    loaded.p_flags = PF_R | PF_W | PF_X;
    loaded.p_memsz = kBytes;
    Elf64_Phdr dynamic = {};
    dynamic.p_type = PT_DYNAMIC;
    dynamic.p_vaddr = kDynamicAt;
    dynamic.p_memsz = 16 * sizeof(Elf64_Dyn);
    put_at<Elf64_Phdr>(bytes, kSegmentsAt, {loaded, dynamic});
    put_at<Elf64_Dyn>(bytes, kDynamicAt,
                      {{DT_SYMTAB, {kSymbolsAt}},
                       {DT_STRTAB, {kBegin + kStringsAt}},
                       {DT_STRSZ, {0x100}},
                       {DT_GNU_HASH, {kHashAt}},
                       {DT_RELA, {kRelocationsAt}},
                       {DT_RELASZ, {2 * sizeof(Elf64_Rela)}},
                       {DT_RELACOUNT, {1}},
                       {DT_JMPREL, {kJumpsAt}},
                       {DT_PLTRELSZ, {sizeof(Elf64_Rela)}},
                       {DT_PLTREL, {DT_RELA}}});
    const std::string names = std::string("\0malloc\0free\0", 13) + std::string(kExported);
    std::copy(names.begin(), names.end(), bytes.begin() + kStringsAt);
    const unsigned char function = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    put_at<Elf64_Sym>(bytes, kSymbolsAt,
                      {{},
                       {1, function, 0, SHN_UNDEF, 0, 0},
                       {8, function, 0, SHN_UNDEF, 0, 0},
                       {13, function, 0, 1, kFunctionAt, 0x10}});
    put_at<std::uint32_t>(bytes, kHashAt, {1, 3, 1, 0, ~0U, ~0U, 3, gnu_hash(kExported) | 1U});
    put_at<Elf64_Rela>(bytes, kRelocationsAt,
                       {{kSlotsAt, ELF64_R_INFO(0, R_X86_64_RELATIVE), 0},
                        {kSlotsAt + 8, ELF64_R_INFO(2, R_X86_64_GLOB_DAT), 0}});
    put_at<Elf64_Rela>(bytes, kJumpsAt, {{kSlotsAt + 16, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0}});
    put_at<std::uint64_t>(bytes, kSlotsAt, {0, kTracer.begin, kBegin + kFunctionAt});
    return bytes;
  }();
  return kModule;
}

// A process that has nothing but the module, as far as it goes.
class Process {
 public:
  Process() : file_(::memfd_create("process", MFD_CLOEXEC)) {}
  const RemoteMemory& memory() const { return memory_; }
  void set(std::string_view module) {
    TIDEMARK_CHECK(::ftruncate(file_, 0) == 0, "cannot empty the memory");
    TIDEMARK_CHECK(::pwrite(file_, module.data(), module.size(), kBegin) ==
                       static_cast<ssize_t>(module.size()),
                   "cannot write the memory");
  }

 private:
  int file_;
  RemoteMemory memory_ = RemoteMemory::over(Fd(::dup(file_)));
};

struct Found {
  std::size_t modules = 0;
  std::size_t exported = 0;
  std::size_t slots = 0;
};

// All that attaching reads of a process.
Found read_process(std::string_view maps, const RemoteMemory& memory) {
  AddressSpace space;
  space.mappings = parse_mappings(maps);
  space.modules = find_modules(space.mappings, memory);
  HookAddresses real = {};
  real.fill(kReal);
  Found found{space.modules.size(), 0, 0};
  for (const RemoteModule& module : space.modules) {
    (void)space.module_at(module.range.begin);
    (void)read_dynamic_tables(module, memory);
    const auto symbols = exported_symbols(module, memory);
    for (const std::uint64_t address : {kBegin, kBegin + kFunctionAt + 8, module.range.end}) {
      (void)symbol_at(symbols, address);
    }
    (void)address_of(symbols, kExported);
    found.exported += find_exported(module, memory, kExported) != 0;
    const ModuleSlots slots = read_slots(module, memory, real, kTracer, space.modules.front());
    found.slots += slots.real.size() + slots.lazy.size() + slots.hooked.size();
    const auto tables = find_python_tables(module, space.mappings, memory, real);
    for (const auto& some : {slots.real, slots.lazy, slots.hooked, tables}) {
      (void)write_slots(some, real, memory);
    }
  }
  (void)find_call_ending(space, memory);
  for (const Mapping& mapping : space.mappings) {
    Registers registers = {};
    registers.rsp = mapping.range.end - 8;
    registers.fs_base = mapping.range.begin;
    (void)own_stack(registers, space.mappings);
    (void)mapping_at(space.mappings, mapping.range.begin);
  }
  return found;
}

std::string patched(std::string_view patches) {
  std::string module = valid_module();
  constexpr std::size_t kHead = 3;
  const auto at = [&patches](std::size_t i) { return static_cast<unsigned char>(patches[i]); };
  while (patches.size() >= kHead) {
    const std::size_t offset = (at(0) | (std::size_t{at(1)} << 8U)) % module.size();
    const std::size_t length =
        std::min({std::size_t{at(2)}, patches.size() - kHead, module.size() - offset});
    module.replace(offset, length, patches.substr(kHead, length));
    patches.remove_prefix(kHead + length);
  }
  return module;
}

void read_state(std::string_view input) {
  StateParts parts = {};
  const std::size_t part_bytes = std::min(input.size(), sizeof(parts));
  std::memcpy(parts.data(), input.data(), part_bytes);
  input.remove_prefix(part_bytes);
  const auto frame = for_signal_frame({input.begin(), input.end()}, parts);
  TIDEMARK_CHECK(frame.size() <= input.size() + sizeof(std::uint32_t), "a frame from nowhere");
  static const StateParts kOwn = state_parts();  // slow in a virtual machine
  (void)for_signal_frame({input.begin(), input.end()}, kOwn);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Process process;
  static const bool is_valid = [] {
    process.set(valid_module());
    const Found found = read_process(kMaps, process.memory());
    return found.modules == 1 && found.exported == 1 && found.slots == 2;
  }();
  TIDEMARK_CHECK(is_valid, "the valid module is not read");
  if (size == 0) {
    return 0;
  }
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      process.set(valid_module());
      (void)read_process(rest, process.memory());
      break;
    case 1:
      process.set(rest);
      (void)read_process(kMaps, process.memory());
      break;
    case 2:
      process.set(patched(rest));
      (void)read_process(kMaps, process.memory());
      break;
    default:
      read_state(rest);
  }
  return 0;
}
