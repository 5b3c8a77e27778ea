// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "profiler/inject/attach.h"

namespace tidemark::inject {
namespace {

// The text behind "Key:\t" in /proc/PID/status; empty: there is no such line.
std::string_view field_of(std::string_view status, std::string_view key) {
  std::string_view line;
  while (monitor::take_line(status, line)) {
    if (line.starts_with(key) && line.substr(key.size()).starts_with(":\t")) {
      return line.substr(key.size() + 2);
    }
  }
  return "";
}

// How the program of a process finds its libraries.
Status check_program(pid_t pid) {
  const auto file = open_file(fmt::format("/proc/{}/exe", pid), O_RDONLY | O_NONBLOCK);
  if (!file) {
    return file.error().sys_errno == ENOENT
               ? Error{Errc::kUnsupported, fmt::format("process {} is a kernel thread", pid)}
               : file.error();
  }
  constexpr std::size_t kMostBytes = 64U << 10U;
  std::string head(kMostBytes, '\0');
  TIDEMARK_TRY_ASSIGN(const auto count, pread_full(file->get(), head));
  head.resize(count);
  Elf64_Ehdr elf = {};
  if (count < sizeof(elf) || !head.starts_with(ELFMAG)) {
    return Error{Errc::kUnsupported, "its program is no ELF file"};
  }
  std::copy_n(head.data(), sizeof(elf), reinterpret_cast<char*>(&elf));
  if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_machine != EM_X86_64) {
    return Error{Errc::kUnsupported, fmt::format("process {} is not an x86-64 program", pid)};
  }
  for (unsigned i = 0; i < elf.e_phnum; ++i) {
    Elf64_Phdr segment = {};
    const std::uint64_t at = elf.e_phoff + i * sizeof(segment);
    if (at + sizeof(segment) > head.size()) {
      break;
    }
    std::copy_n(head.data() + at, sizeof(segment), reinterpret_cast<char*>(&segment));
    if (segment.p_type != PT_INTERP || segment.p_offset >= head.size()) {
      continue;
    }
    const std::string_view linker = head.c_str() + segment.p_offset;
    return linker.find("ld-musl") == std::string_view::npos
               ? ok()
               : Status(Error{Errc::kUnsupported,
                              fmt::format("process {} uses musl, not glibc", pid)});
  }
  return Error{Errc::kUnsupported, fmt::format("process {} is statically linked", pid)};
}

// A child of vfork() uses the memory of its parent until it starts a program.
bool shares_memory_of_parent(pid_t pid, std::string_view parent) {
  pid_t above = 0;
  return std::from_chars(parent.data(), parent.data() + parent.size(), above).ec == std::errc() &&
         ::syscall(SYS_kcmp, pid, above, KCMP_VM, 0, 0) == 0;
}

}  // namespace

Status check_target(pid_t pid) {
  if (pid == ::getpid()) {
    return Error{Errc::kUsage, "this process cannot attach to itself"};
  }
  const auto text = read_file(fmt::format("/proc/{}/status", pid));
  if (!text) {
    return Error{Errc::kNotFound, fmt::format("there is no process {}", pid)};
  }
  const std::string_view state = field_of(*text, "State");
  if (state.starts_with('Z') || state.starts_with('X')) {
    // Its other threads may live on; they cannot be asked for the program.
    return Error{Errc::kGone, fmt::format("process {} has exited", pid)};
  }
  if (state.starts_with('T')) {
    return Error{Errc::kUnsupported,
                 fmt::format("process {} is stopped; resume it first: kill -CONT {}", pid, pid)};
  }
  if (const auto tracer = field_of(*text, "TracerPid"); !tracer.empty() && tracer != "0") {
    return Error{Errc::kPermission,
                 fmt::format("process {} is traced by process {} (a debugger or strace)", pid,
                             escape_text(tracer))};
  }
  if (field_of(*text, "x86_Thread_features").find("shstk") != std::string_view::npos) {
    return Error{Errc::kUnsupported, fmt::format("process {} has a shadow stack", pid)};
  }
  if (field_of(*text, "Seccomp") == "1") {
    return Error{Errc::kUnsupported,
                 fmt::format("process {} may do no more than read and write (seccomp)", pid)};
  }
  if (has_seccomp_filter_of_its_own(pid)) {
    return Error{Errc::kUnsupported,
                 fmt::format("process {} has filtered its system calls, and the filter may end it "
                             "for one of the tracer's (seccomp)",
                             pid)};
  }
  if (shares_memory_of_parent(pid, field_of(*text, "PPid"))) {
    return Error{Errc::kUnsupported,
                 fmt::format("process {} still uses the memory of its parent (vfork)", pid)};
  }
  TIDEMARK_TRY(check_program(pid));
  if (const auto memory = RemoteMemory::open(pid); !memory) {
    return memory.error();
  }
  return ok();
}

}  // namespace tidemark::inject
