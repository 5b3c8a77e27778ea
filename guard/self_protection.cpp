// SPDX-License-Identifier: Apache-2.0
#include "guard/self_protection.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"

namespace tidemark::guard {
namespace {

constexpr int kShieldedScore = -900;  // -1000 would make even a guard that went wrong immortal

Status write_score(const std::string& path, int score) {
  auto file = open_file(path, O_WRONLY);
  if (!file) {
    return file.error();
  }
  return write_all(file->get(), fmt::format("{}", score));
}

// Without a bound. With one, MCL_FUTURE would make a later thread or allocation of ours fail.
bool may_lock_everything() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY) {
    return true;
  }
  constexpr unsigned kIpcLock = 14;  // CAP_IPC_LOCK
  const auto status = read_file("/proc/self/status");
  std::string_view rest = status ? std::string_view(*status) : std::string_view();
  while (const auto line = next_line(rest)) {
    if (line->starts_with("CapEff:")) {
      const std::string_view digits = trim(line->substr(7));
      std::uint64_t granted = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), granted, 16);
      return ((granted >> kIpcLock) & 1U) != 0;
    }
  }
  return false;
}

// Code that was never run yet is not in memory; the path that kills is such code, here and in libc.
int lock_code(dl_phdr_info* object, std::size_t /*size*/, void* /*nothing*/) {
  const std::string_view name = basename_of(object->dlpi_name);
  if (!name.empty() && !name.starts_with("libc.so")) {
    return 0;
  }
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader tells addresses as numbers
      const auto* const begin = reinterpret_cast<const void*>(object->dlpi_addr + segment.p_vaddr);
      (void)lock_region(begin, segment.p_memsz);
    }
  }
  return 0;
}

}  // namespace

bool lock_region(const void* begin, std::size_t bytes) {
  return ::mlock(begin, bytes) == 0;  // Linux takes whole pages by itself
}

// On fault: thread stacks and the allocator's reserves are large and mostly never touched.
std::string lock_own_memory() {
  const bool all = may_lock_everything() && ::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
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

}  // namespace tidemark::guard
