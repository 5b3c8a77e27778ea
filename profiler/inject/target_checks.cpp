// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/target_checks.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_files.h"
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

// The numbers of a line of status: "Uid:\t1000\t1000\t1000\t1000", or of hexadecimal masks.
std::vector<std::uint64_t> numbers_of(std::string_view text, int base) {
  std::vector<std::uint64_t> numbers;
  for (std::string_view word = monitor::take_word(text); !word.empty();
       word = monitor::take_word(text)) {
    std::uint64_t number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number, base);
    numbers.push_back(number);
  }
  return numbers;
}

bool may_trace_all() {
  constexpr std::uint64_t kSysPtrace = std::uint64_t{1} << 19U;  // linux/capability.h
  const auto status = read_file("/proc/self/status");
  const auto masks = numbers_of(status ? field_of(*status, "CapEff") : "", 16);
  return !masks.empty() && (masks.front() & kSysPtrace) != 0;
}

// 0: there is no Yama, or it allows what the kernel always has.
int yama_scope() {
  const auto text = read_file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (text) {
    std::from_chars(text->data(), text->data() + text->size(), scope);
  }
  return scope;
}

TraceRights rights_to(pid_t pid) {
  const auto status = read_file(fmt::format("/proc/{}/status", pid));
  TraceRights rights;
  rights.pid = pid;
  rights.uids = numbers_of(status ? field_of(*status, "Uid") : "", 10);
  rights.own_uid = ::geteuid();
  rights.may_trace_all = may_trace_all();
  rights.yama_scope = yama_scope();
  return rights;
}

Error denied(pid_t pid, int sys_errno) {
  return {Errc::kPermission, explain_denial(rights_to(pid)).why, sys_errno};
}

// They have no program. Newer kernels say so; with others all are started by kthreadd, process 2.
bool is_kernel_thread(pid_t pid, std::string_view status) {
  constexpr pid_t kParentOfAll = 2;
  const std::string_view told = field_of(status, "Kthread");
  return told == "1" ||
         (told.empty() && field_of(status, "VmSize").empty() &&
          (pid == kParentOfAll || field_of(status, "PPid") == std::to_string(kParentOfAll)));
}

// The beginning of the program of a process, which is a 64-bit one.
Result<std::string> head_of_program(pid_t pid) {
  const auto file = open_file(fmt::format("/proc/{}/exe", pid), O_RDONLY | O_NONBLOCK);
  if (!file) {
    return file.error().sys_errno == ENOENT
               ? Error{Errc::kGone, fmt::format("process {} has exited", pid)}
           : file.error().code == Errc::kPermission ? denied(pid, file.error().sys_errno)
                                                    : file.error();
  }
  constexpr std::size_t kMostBytes = 64U << 10U;
  std::string head(kMostBytes, '\0');
  TIDEMARK_TRY_ASSIGN(const auto count, pread_full(file->get(), head));
  head.resize(count);
  if (count < sizeof(Elf64_Ehdr) || !head.starts_with(ELFMAG)) {
    return Error{Errc::kUnsupported, "its program is no ELF file"};
  }
  Elf64_Ehdr elf = {};
  std::copy_n(head.data(), sizeof(elf), reinterpret_cast<char*>(&elf));
  if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_machine != EM_X86_64) {
    return Error{Errc::kUnsupported, fmt::format("process {} is not an x86-64 program", pid)};
  }
  return head;
}

// How the program of a process finds its libraries.
Status check_program(pid_t pid) {
  TIDEMARK_TRY_ASSIGN(const std::string head, head_of_program(pid));
  Elf64_Ehdr elf = {};
  std::copy_n(head.data(), sizeof(elf), reinterpret_cast<char*>(&elf));
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

// What /proc/PID/status has of a process that others may be interested in.
Result<std::string> status_text_of(pid_t pid) {
  if (pid == ::getpid()) {
    return Error{Errc::kUsage, "this process cannot attach to itself"};
  }
  auto text = read_file(fmt::format("/proc/{}/status", pid));
  if (!text) {
    return Error{Errc::kNotFound, fmt::format("there is no process {}", pid)};
  }
  // /proc has threads too, though it does not list them.
  if (const auto process = field_of(*text, "Tgid"); process != std::to_string(pid)) {
    return Error{Errc::kUsage, fmt::format("{0} is a thread of process {1}: use --pid {1}", pid,
                                           escape_text(process))};
  }
  const std::string_view state = field_of(*text, "State");
  if (state.starts_with('Z') || state.starts_with('X')) {
    // Its other threads may live on; they cannot be asked for the program.
    return Error{Errc::kGone, fmt::format("process {} has exited", pid)};
  }
  if (is_kernel_thread(pid, *text)) {
    return Error{Errc::kUsage, fmt::format("process {} is a kernel thread", pid)};
  }
  return text;
}

Status check_tracer_and_filters(pid_t pid, std::string_view text) {
  if (const auto tracer = field_of(text, "TracerPid"); !tracer.empty() && tracer != "0") {
    return Error{Errc::kPermission,
                 fmt::format("process {} is traced by process {} (a debugger or strace)", pid,
                             escape_text(tracer))};
  }
  if (field_of(text, "Seccomp") == "1") {
    return Error{Errc::kUnsupported,
                 fmt::format("process {} may do no more than read and write (seccomp)", pid)};
  }
  if (has_seccomp_filter_of_its_own(pid)) {
    return Error{Errc::kUnsupported,
                 fmt::format("process {} has filtered its system calls, and the filter may end it "
                             "for one of the tracer's (seccomp)",
                             pid)};
  }
  if (shares_memory_of_parent(pid, field_of(text, "PPid"))) {
    return Error{Errc::kUnsupported,
                 fmt::format("process {} still uses the memory of its parent (vfork)", pid)};
  }
  return ok();
}

// What a stack leads back to has to be on the shadow stack, too.
Status check_shadow_stack(pid_t pid, std::string_view text) {
  if (field_of(text, "x86_Thread_features").find("shstk") != std::string_view::npos) {
    return Error{Errc::kUnsupported, fmt::format("process {} has a shadow stack", pid)};
  }
  return ok();
}

Status check_memory(pid_t pid) {
  const auto memory = RemoteMemory::open(pid);
  return memory                                     ? ok()
         : memory.error().code == Errc::kPermission ? denied(pid, memory.error().sys_errno)
                                                    : Status(memory.error());
}

}  // namespace

Denial explain_denial(const TraceRights& rights) {
  const std::string below = "start the job below it: tidemark profile -- COMMAND";
  const std::string with_sudo = "run it with sudo, or " + below;
  const bool is_root = rights.own_uid == 0;
  if (is_root && !rights.may_trace_all) {
    return {"root lacks the capability SYS_PTRACE here, as in a container",
            "give it to the container (docker run --cap-add SYS_PTRACE), or " + below};
  }
  const auto other = std::find_if(rights.uids.begin(), rights.uids.end(),
                                  [&](std::uint64_t uid) { return uid != rights.own_uid; });
  if (!is_root && other != rights.uids.end()) {
    return {fmt::format("process {} belongs to user {}, not to user {}", rights.pid, *other,
                        rights.own_uid),
            with_sudo};
  }
  if (rights.yama_scope == 3) {
    return {"no process may be traced on this machine (kernel.yama.ptrace_scope is 3)", below};
  }
  if (!is_root && rights.yama_scope > 0) {
    return {fmt::format("without root a process may trace {} on this machine "
                        "(kernel.yama.ptrace_scope is {})",
                        rights.yama_scope == 1 ? "only what it has started itself" : "no other",
                        rights.yama_scope),
            with_sudo};
  }
  return {fmt::format("the kernel does not let this user trace process {}: it has rights that this "
                      "user does not have, or is protected (prctl, a security module)",
                      rights.pid),
          is_root ? below : with_sudo};
}

Status check_target(pid_t pid) {
  TIDEMARK_TRY_ASSIGN(const std::string text, status_text_of(pid));
  if (field_of(text, "State").starts_with('T')) {
    return Error{Errc::kUnsupported,
                 fmt::format("process {} is stopped; resume it first: kill -CONT {}", pid, pid)};
  }
  TIDEMARK_TRY(check_tracer_and_filters(pid, text));
  TIDEMARK_TRY(check_shadow_stack(pid, text));
  TIDEMARK_TRY(check_program(pid));
  if (monitor::has_raised_privileges(fmt::format("/proc/{}", pid))) {
    return Error{Errc::kUnsupported,
                 fmt::format("process {} has raised privileges (set-user-ID, set-group-ID or "
                             "capabilities)",
                             pid)};
  }
  return check_memory(pid);
}

Status check_target_of_calls(pid_t pid) {
  TIDEMARK_TRY_ASSIGN(const std::string text, status_text_of(pid));
  TIDEMARK_TRY(check_tracer_and_filters(pid, text));
  TIDEMARK_TRY(check_shadow_stack(pid, text));
  TIDEMARK_TRY(head_of_program(pid));
  return check_memory(pid);
}

std::string permission_hint(pid_t pid) { return explain_denial(rights_to(pid)).hint; }

}  // namespace tidemark::inject
