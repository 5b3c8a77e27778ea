// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/module_lookup.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/auxv.h>

#include <atomic>
#include <bit>

namespace tidemark::tracer {
namespace {

// What `_dl_find_object` fills; glibc's manual, "Finding the object of an address". Declared here
// because headers before 2.35 do not have it.
struct FoundObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  void* link_map;
  void* eh_frame;
  unsigned long long reserved[7];
};
static_assert(sizeof(FoundObject) == 96);
using FindObject = int (*)(void* pc, FoundObject* result);

// The segment of the program itself with its unwind tables. The kernel maps programs with gaps, and
// then `_dl_find_object` returns a single segment, which does not contain the tables.
constinit std::atomic<std::uint64_t> g_program_tables_start{0};
constinit std::atomic<std::uint64_t> g_program_tables_end{0};

constinit std::atomic<FindObject> g_find_object{nullptr};
constinit std::atomic<ModuleFinder> g_finder{nullptr};

struct ProgramHeaders {
  const Elf64_Phdr* first = nullptr;
  std::size_t count = 0;
  std::uint64_t bias = 0;  // from the addresses of the file to those of memory
};

ProgramHeaders program_headers() noexcept {
  ProgramHeaders headers;
  headers.first = std::bit_cast<const Elf64_Phdr*>(getauxval(AT_PHDR));
  headers.count = headers.first != nullptr ? getauxval(AT_PHNUM) : 0;
  for (std::size_t i = 0; i < headers.count; ++i) {
    if (headers.first[i].p_type == PT_PHDR) {
      headers.bias = reinterpret_cast<std::uint64_t>(headers.first) - headers.first[i].p_vaddr;
    }
  }
  return headers;
}

void learn_program_tables() noexcept {
  const ProgramHeaders headers = program_headers();
  std::uint64_t table = 0;
  for (std::size_t i = 0; i < headers.count; ++i) {
    if (headers.first[i].p_type == PT_GNU_EH_FRAME) {
      table = headers.first[i].p_vaddr;
    }
  }
  for (std::size_t i = 0; i < headers.count; ++i) {
    const Elf64_Phdr& segment = headers.first[i];
    if (table != 0 && segment.p_type == PT_LOAD && table >= segment.p_vaddr &&
        table - segment.p_vaddr < segment.p_filesz) {
      g_program_tables_start.store(headers.bias + segment.p_vaddr, std::memory_order_relaxed);
      g_program_tables_end.store(headers.bias + segment.p_vaddr + segment.p_filesz,
                                 std::memory_order_relaxed);
    }
  }
}

void widen_to_tables(LoadedModule& module) noexcept {
  const std::uint64_t start = g_program_tables_start.load(std::memory_order_relaxed);
  const std::uint64_t end = g_program_tables_end.load(std::memory_order_relaxed);
  if (module.eh_frame_hdr >= start && module.eh_frame_hdr < end) {
    module.start = start;
    module.end = end;
  }
}

}  // namespace

bool resolve_module_lookup() noexcept {
  learn_program_tables();
  void* const symbol = dlsym(RTLD_DEFAULT, "_dl_find_object");
  g_find_object.store(reinterpret_cast<FindObject>(symbol), std::memory_order_release);
  return symbol != nullptr;
}

void set_module_finder(ModuleFinder finder) noexcept {
  g_finder.store(finder, std::memory_order_release);
}

bool find_module(std::uint64_t pc, LoadedModule& module) noexcept {
  if (const ModuleFinder finder = g_finder.load(std::memory_order_acquire); finder != nullptr) {
    return finder(pc, module);
  }
  FoundObject found;
  const FindObject find = g_find_object.load(std::memory_order_acquire);
  if (find == nullptr || find(std::bit_cast<void*>(pc), &found) != 0) {
    return false;
  }
  module = {reinterpret_cast<std::uint64_t>(found.map_start),
            reinterpret_cast<std::uint64_t>(found.map_end),
            reinterpret_cast<std::uint64_t>(found.eh_frame)};
  if (module.eh_frame_hdr < module.start || module.eh_frame_hdr >= module.end) [[unlikely]] {
    widen_to_tables(module);
  }
  return true;
}

}  // namespace tidemark::tracer
