// SPDX-License-Identifier: Apache-2.0
// The ways to fork that run no handler of pthread_atfork. A child of a signal handler may return
// into the hook that was interrupted, whose tables are not there: it has to hear that it is one.
#include "profiler/tracer/fork_hooks.h"

#include <dlfcn.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <cerrno>

#include "profiler/tracer/export.h"
#include "profiler/tracer/life.h"
#include "profiler/tracer/turn.h"
#include "profiler/tracer/unwind/stack_bounds.h"

extern "C" {
using AnyFunction = void (*)();
[[gnu::visibility("hidden")]] extern AnyFunction g_next_syscall;  // in filter_hooks.cpp
}

namespace tidemark::tracer {
namespace {

using Fork = pid_t (*)();
constinit Fork g_next_fork = nullptr;

// No signal comes between the beginning of a child and the news of it.
template <typename Call>
long fork_by(Call call) {
  const NoSignals quiet;
  fork_begins();
  const long result = call();
  if (result == 0) {
    forked();
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

void find_next_fork() noexcept { g_next_fork = reinterpret_cast<Fork>(dlsym(RTLD_NEXT, "_Fork")); }

}  // namespace tidemark::tracer

using namespace tidemark::tracer;  // NOLINT(google-build-using-namespace): C names follow

extern "C" {

// Whether syscall() with these would return twice here, in two processes. Any other kind of clone
// goes on with a stack that is not ours to be on.
[[gnu::used]] bool is_forking_syscall(long number, unsigned long a, unsigned long b) {
  return number == SYS_fork || (number == SYS_clone && is_copy_on_this_stack(a, b)) ||
         (number == SYS_clone3 && is_copy_on_this_stack(reinterpret_cast<clone_args*>(a), b));
}

[[gnu::used]] long forking_syscall(long number, long a, long b, long c, long d, long e) {
  using Syscall = long (*)(long, long, long, long, long, long);
  const auto next = reinterpret_cast<Syscall>(g_next_syscall);
  return fork_by([&] { return next(number, a, b, c, d, e); });
}
}

TIDEMARK_EXPORT pid_t _Fork() {  // NOLINT: libc's name
  if (g_next_fork == nullptr) {
    find_next_fork();  // another library's constructor came before ours
  }
  if (g_next_fork == nullptr) {
    errno = ENOSYS;  // libc is older than it
    return -1;
  }
  return static_cast<pid_t>(fork_by([] { return long{g_next_fork()}; }));
}
