// SPDX-License-Identifier: Apache-2.0
// Prints where some calls of it are, as addresses in its own file, and on which lines they stand:
//   build_id HEX
//   inlined ADDRESS LEAF_LINE MIDDLE_LINE OUTER_LINE
//   hidden ADDRESS LINE
//   local ADDRESS LINE
//   start ADDRESS: in code that has no debug information
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

extern "C" void _start();

namespace victims {

std::uint64_t g_address = 0;
int g_lines[3];

// The address of the call that led here.
__attribute__((noinline)) void note_caller() {
  g_address = reinterpret_cast<std::uint64_t>(__builtin_return_address(0)) - 1;
  asm volatile("" ::: "memory");
}

__attribute__((always_inline)) inline void leaf(int& value) {
  value += 1;
  note_caller(), g_lines[0] = __LINE__;
  asm volatile("" : "+r"(value)::"memory");
}

__attribute__((always_inline)) inline void middle(int& value) {
  value *= 3;
  leaf(value), g_lines[1] = __LINE__;
  asm volatile("" : "+r"(value)::"memory");
}

// Exported, so that a stripped copy still has its name.
__attribute__((noinline, visibility("default"))) int outer(int value) {
  asm volatile("" : "+r"(value)::"memory");
  middle(value), g_lines[2] = __LINE__;
  return value;
}

// Nothing is left of its name in a stripped copy.
__attribute__((noinline)) static int hidden(int value) {
  asm volatile("" : "+r"(value)::"memory");
  note_caller(), g_lines[0] = __LINE__;
  asm volatile("" : "+r"(value)::"memory");
  return value;
}

namespace {

struct Box {
  int value = 0;
  __attribute__((always_inline)) void fill() {
    value += 1;
    note_caller(), g_lines[0] = __LINE__;
    asm volatile("" : "+r"(value)::"memory");
  }
};

}  // namespace

__attribute__((noinline)) int caller_of_local(int value) {
  Box box{value};
  asm volatile("" : "+r"(box.value)::"memory");
  box.fill();
  return box.value;
}

}  // namespace victims

namespace {

struct Self {
  std::uint64_t bias = 0;
  const unsigned char* build_id = nullptr;
  std::size_t build_id_bytes = 0;
};

void look_at_notes(const char* at, const char* end, Self& self) {
  while (at + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const char* name = at + sizeof note;
    const char* content = name + (note.n_namesz + 3U) / 4U * 4U;
    if (note.n_type == NT_GNU_BUILD_ID && std::memcmp(name, "GNU", 4) == 0) {
      self.build_id = reinterpret_cast<const unsigned char*>(content);
      self.build_id_bytes = note.n_descsz;
    }
    at = content + (note.n_descsz + 3U) / 4U * 4U;
  }
}

// The program itself is the first in the list.
int look_at_self(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  Self& self = *static_cast<Self*>(data);
  self.bias = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_NOTE) {
      const auto* begin =
          reinterpret_cast<const char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
      look_at_notes(begin, begin + info->dlpi_phdr[i].p_memsz, self);
    }
  }
  return 1;
}

}  // namespace

int main() {
  Self self;
  ::dl_iterate_phdr(look_at_self, &self);
  std::printf("build_id ");
  for (std::size_t i = 0; i < self.build_id_bytes; ++i) {
    std::printf("%02x", self.build_id[i]);
  }
  victims::outer(1);
  std::printf("\ninlined %lu %d %d %d\n", victims::g_address - self.bias, victims::g_lines[0],
              victims::g_lines[1], victims::g_lines[2]);
  victims::hidden(1);
  std::printf("hidden %lu %d\n", victims::g_address - self.bias, victims::g_lines[0]);
  victims::caller_of_local(1);
  std::printf("local %lu %d\n", victims::g_address - self.bias, victims::g_lines[0]);
  std::printf("start %lu\n", reinterpret_cast<std::uint64_t>(&_start) - self.bias + 4);
  return 0;
}
