// SPDX-License-Identifier: Apache-2.0
// The two ways to filter the system calls of a program. A filter that kills for a call which the
// program does not make itself would kill it for one of ours: from then on the tracer makes none.
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cerrno>

#include "profiler/tracer/call_filter.h"
#include "profiler/tracer/export.h"
#include "profiler/tracer/filter_hooks.h"
#include "profiler/tracer/life.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/sys.h"

extern "C" {
void plain_syscall();
using AnyFunction = void (*)();
// Hidden: the assembly below needs its address without a look-up.
[[gnu::visibility("hidden"), gnu::used]] constinit AnyFunction g_next_syscall = plain_syscall;
}

namespace tidemark::tracer {
namespace {

using Prctl = int (*)(int, unsigned long, unsigned long, unsigned long, unsigned long);
constinit Prctl g_next_prctl = nullptr;

long result_of(long result) noexcept {
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

// Makes the call, which is about to install a filter: silent before it, and again as before when it
// was refused. Never by the real function: a filter may kill for what that does besides.
[[gnu::noinline]] long install(bool harmful, long number, long a, long b, long c, long d, long e) {
  const bool falls_silent = harmful && filter_begins();
  const long result = sys::call(number, a, b, c, d, e);
  if (falls_silent && result < 0) {
    filter_failed();
  }
  return result_of(result);
}

}  // namespace

void find_next_filter() noexcept {
  if (void* const found = dlsym(RTLD_NEXT, "syscall"); found != nullptr) {
    g_next_syscall = reinterpret_cast<AnyFunction>(found);
  }
  g_next_prctl = reinterpret_cast<Prctl>(dlsym(RTLD_NEXT, "prctl"));
}

}  // namespace tidemark::tracer

using namespace tidemark::tracer;  // NOLINT(google-build-using-namespace): C names follow

namespace {

bool is_harmful(unsigned long mode, unsigned long argument) noexcept {
  return mode == SECCOMP_MODE_STRICT || may_harm(reinterpret_cast<const sock_fprog*>(argument));
}

}  // namespace

// Under names of ours, because headers declare the real ones with an ellipsis.
TIDEMARK_EXPORT long hooked_syscall() asm("syscall");
TIDEMARK_EXPORT int hooked_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
                                 unsigned long d) asm("prctl");

extern "C" {

// What syscall() comes to for SYS_seccomp, and for SYS_prctl with PR_SET_SECCOMP.
[[gnu::used]] long filtering_syscall(long number, long a, long b, long c, long d, long e) {
  if (number == SYS_prctl) {
    return install(is_harmful(static_cast<unsigned long>(b), static_cast<unsigned long>(c)), number,
                   a, b, c, d, e);
  }
  const bool installs = a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER;
  const unsigned long mode = a == SECCOMP_SET_MODE_STRICT ? SECCOMP_MODE_STRICT : 0;
  return install(installs && is_harmful(mode, static_cast<unsigned long>(c)), number, a, b, c, d,
                 e);
}

[[gnu::used]] long failed_syscall(long result) { return result_of(result); }

// For the time before the real one is known.
[[gnu::naked]] void plain_syscall() {
  asm("mov %rdi, %rax\n"
      "mov %rsi, %rdi\n"
      "mov %rdx, %rsi\n"
      "mov %rcx, %rdx\n"
      "mov %r8, %r10\n"
      "mov %r9, %r8\n"
      "mov 8(%rsp), %r9\n"
      "syscall\n"
      "cmp $-4095, %rax\n"
      "jae 1f\n"
      "ret\n"
      "1: mov %rax, %rdi\n"
      "jmp failed_syscall\n");
}
}

// In assembly: how many arguments there are depends on the call, so that a compiled function would
// take what lies on the caller's stack for one of them, and might write it.
static_assert(SYS_seccomp == 317 && SYS_prctl == 157 && PR_SET_SECCOMP == 22);
static_assert(SYS_fork == 57 && SYS_clone == 56 && SYS_clone3 == 435);
[[gnu::naked]] long hooked_syscall() {
  asm("cmp $317, %rdi\n"
      "je filtering_syscall\n"
      "cmp $157, %rdi\n"
      "je 2f\n"
      "cmp $57, %rdi\n"
      "je 3f\n"
      "cmp $56, %rdi\n"
      "je 3f\n"
      "cmp $435, %rdi\n"
      "je 3f\n"
      "1: jmp *g_next_syscall(%rip)\n"
      "2: cmp $22, %rsi\n"
      "jne 1b\n"
      "jmp filtering_syscall\n"
      "3: push %rdi\n"
      "push %rsi\n"
      "push %rdx\n"
      "push %rcx\n"
      "push %r8\n"
      "push %r9\n"
      "sub $8, %rsp\n"
      ".cfi_adjust_cfa_offset 56\n"
      "call is_forking_syscall\n"
      "add $8, %rsp\n"
      "pop %r9\n"
      "pop %r8\n"
      "pop %rcx\n"
      "pop %rdx\n"
      "pop %rsi\n"
      "pop %rdi\n"
      ".cfi_adjust_cfa_offset -56\n"
      "test %al, %al\n"
      "je 1b\n"
      "jmp forking_syscall\n");
}

int hooked_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
  const auto word = [](unsigned long value) { return static_cast<long>(value); };
  if (option == PR_SET_SECCOMP) [[unlikely]] {
    return static_cast<int>(
        install(is_harmful(a, b), SYS_prctl, option, word(a), word(b), word(c), word(d)));
  }
  if (g_next_prctl != nullptr) [[likely]] {
    return g_next_prctl(option, a, b, c, d);
  }
  return static_cast<int>(
      result_of(sys::call(SYS_prctl, option, word(a), word(b), word(c), word(d))));
}
