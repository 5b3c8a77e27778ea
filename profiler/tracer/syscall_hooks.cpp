// SPDX-License-Identifier: Apache-2.0
// syscall, prctl and _Fork.
//
// Seccomp: a filter that kills for a call which the program does not make itself would kill it for
// one of ours, so from then on the tracer makes none.
//
// Forks that run no handler of pthread_atfork: the child of a signal handler may return into the
// hook that was interrupted, whose tables are not mapped there; after_fork_in_child() handles that.
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <cerrno>

#include "profiler/tracer/bounded_lock.h"
#include "profiler/tracer/hooks.h"
#include "profiler/tracer/seccomp_filter.h"
#include "profiler/tracer/sys.h"
#include "profiler/tracer/tracer_state.h"
#include "profiler/tracer/unwind/stack_bounds.h"

extern "C" {
void syscall_without_libc();
using AnyFunction = void (*)();
// Hidden: the assembly below needs its address without a lookup.
[[gnu::visibility("hidden"), gnu::used]] constinit AnyFunction g_next_syscall =
    syscall_without_libc;
}

namespace tidemark::tracer {
namespace {

using Prctl = int (*)(int, unsigned long, unsigned long, unsigned long, unsigned long);
constinit Prctl g_next_prctl = nullptr;
using Fork = pid_t (*)();
constinit Fork g_next_fork = nullptr;

// Makes a call that installs a filter. Never by the real function: a filter may kill for what that
// does besides.
[[gnu::noinline]] long install_filter(bool may_harm, long number, long a, long b, long c, long d,
                                      long e) {
  const bool stops = may_harm && before_seccomp();
  const long result = sys::call(number, a, b, c, d, e);
  if (stops && result < 0) {
    after_failed_seccomp();
  }
  return set_errno(result);
}

bool may_harm_process(unsigned long mode, unsigned long argument) noexcept {
  return mode == SECCOMP_MODE_STRICT || may_harm(reinterpret_cast<const sock_fprog*>(argument));
}

// Signals are blocked so that none is handled in the child before after_fork_in_child().
template <typename Call>
long fork_by(Call call) {
  const SignalBlocker blocker;
  before_fork();
  const long result = call();
  if (result == 0) {
    after_fork_in_child();
  }
  return result;
}

bool is_copy_on_this_stack(unsigned long flags, unsigned long stack) noexcept {
  return (flags & CLONE_VM) == 0 && stack == 0;
}

bool is_copy_on_this_stack(const clone_args* how, unsigned long bytes) noexcept {
  const auto begin = reinterpret_cast<unsigned long>(how);
  return bytes >= CLONE_ARGS_SIZE_VER0 && is_readable(begin) &&
         is_readable(begin + CLONE_ARGS_SIZE_VER0 - sizeof(long)) &&
         is_copy_on_this_stack(how->flags, how->stack);
}

}  // namespace

void look_up_syscall_functions() noexcept {
  if (void* const found = next_function("syscall"); found != nullptr) {
    g_next_syscall = reinterpret_cast<AnyFunction>(found);
  }
  g_next_prctl = reinterpret_cast<Prctl>(next_function("prctl"));
  g_next_fork = reinterpret_cast<Fork>(next_function("_Fork"));
}

}  // namespace tidemark::tracer

using namespace tidemark::tracer;  // NOLINT(google-build-using-namespace): C names follow

// Under names of ours, because headers declare the real ones with an ellipsis.
TIDEMARK_EXPORT long hooked_syscall() asm("syscall");
TIDEMARK_EXPORT int hooked_prctl(int option, unsigned long a, unsigned long b, unsigned long c,
                                 unsigned long d) asm("prctl");

// Where the assembly below jumps to.
extern "C" {

// For SYS_seccomp, and for SYS_prctl with PR_SET_SECCOMP.
[[gnu::used]] long filtering_syscall(long number, long a, long b, long c, long d, long e) {
  if (number == SYS_prctl) {
    return install_filter(
        may_harm_process(static_cast<unsigned long>(b), static_cast<unsigned long>(c)), number, a,
        b, c, d, e);
  }
  const bool installs = a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER;
  const unsigned long mode = a == SECCOMP_SET_MODE_STRICT ? SECCOMP_MODE_STRICT : 0;
  return install_filter(installs && may_harm_process(mode, static_cast<unsigned long>(c)), number,
                        a, b, c, d, e);
}

// Whether syscall() with these arguments would return twice here, in two processes. Any other kind
// of clone continues on a stack that we must not touch.
[[gnu::used]] bool is_forking_syscall(long number, unsigned long a, unsigned long b) {
  return number == SYS_fork || (number == SYS_clone && is_copy_on_this_stack(a, b)) ||
         (number == SYS_clone3 && is_copy_on_this_stack(reinterpret_cast<clone_args*>(a), b));
}

[[gnu::used]] long forking_syscall(long number, long a, long b, long c, long d, long e) {
  using Syscall = long (*)(long, long, long, long, long, long);
  const auto next = reinterpret_cast<Syscall>(g_next_syscall);
  return fork_by([&] { return next(number, a, b, c, d, e); });
}

[[gnu::used]] long failed_syscall(long result) { return set_errno(result); }

// Used until the real one is looked up.
[[gnu::naked]] void syscall_without_libc() {
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
// take what lies on the caller's stack for one of them, and might write to it.
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
    return static_cast<int>(install_filter(may_harm_process(a, b), SYS_prctl, option, word(a),
                                           word(b), word(c), word(d)));
  }
  if (g_next_prctl != nullptr) [[likely]] {
    return g_next_prctl(option, a, b, c, d);
  }
  return static_cast<int>(
      set_errno(sys::call(SYS_prctl, option, word(a), word(b), word(c), word(d))));
}

TIDEMARK_EXPORT pid_t _Fork() {  // NOLINT: libc's name
  if (g_next_fork == nullptr) {
    look_up_syscall_functions();  // called by the constructor of a library that runs before ours
  }
  if (g_next_fork == nullptr) {
    errno = ENOSYS;  // this libc has none
    return -1;
  }
  return static_cast<pid_t>(fork_by([] { return long{g_next_fork()}; }));
}
