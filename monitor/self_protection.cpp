// SPDX-License-Identifier: Apache-2.0
#include "monitor/self_protection.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"

namespace tidemark::monitor {
namespace {

constexpr int kShieldedScore = -900;  // -1000 would make even a guard that went wrong immortal

Status write_score(const std::string& path, int score) {
  auto file = open_file(path, O_WRONLY);
  if (!file) {
    return file.error();
  }
  return write_all(file->get(), fmt::format("{}", score));
}

// Code that was never run yet is not in memory; the path that kills is such code.
int lock_code(dl_phdr_info* object, std::size_t /*size*/, void* /*nothing*/) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) {
      (void)lock_region(reinterpret_cast<const void*>(object->dlpi_addr + segment.p_vaddr),
                        segment.p_memsz);
    }
  }
  return 0;
}

}  // namespace

bool lock_region(const void* begin, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = address / page * page;
  const std::uintptr_t last = (address + bytes + page - 1) / page * page;
  return ::mlock(reinterpret_cast<const void*>(first), last - first) == 0;
}

// On fault: thread stacks and the allocator's reserves are large and mostly never touched. Where
// the user may lock little (`ulimit -l`), whatever fits is locked, the most important first.
std::string lock_own_memory() {
  const bool all = ::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
  ::dl_iterate_phdr(lock_code, nullptr);
  return all ? "" : "may not lock all of its memory (ulimit -l): only what it needs to act";
}

OomShield::OomShield(std::string path) : path_(std::move(path)) {}

OomShield::~OomShield() { take_down(); }

std::string OomShield::put_up() {
  if (before_) {
    return "";
  }
  const auto text = read_file(path_, 64);
  const auto now = text ? parse_number<int>(trim(*text)) : std::nullopt;
  if (!now) {
    return "cannot read its own OOM score: the kernel may end the guard first";
  }
  // Without privileges a process may go back to the lowest score that was ever given to it.
  for (const int score : {kShieldedScore, 0}) {
    if (score < *now && write_score(path_, score)) {
      before_ = now;
      break;
    }
  }
  return before_ || *now <= kShieldedScore
             ? ""
             : "may not lower its OOM score (CAP_SYS_RESOURCE): the kernel may end the guard first";
}

void OomShield::take_down() {
  if (before_) {
    (void)write_score(path_, *std::exchange(before_, std::nullopt));  // going up is always allowed
  }
}

}  // namespace tidemark::monitor
