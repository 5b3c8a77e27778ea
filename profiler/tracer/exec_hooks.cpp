// SPDX-License-Identifier: Apache-2.0
// The functions that start another program: it is traced even if the caller passes an environment
// without our variables. All of this may run in a child of vfork, and on a stack of a few
// kilobytes: little of the stack is used, and of other memory only what ExecMemory has.
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>

#include "profiler/tracer/child_environment.h"
#include "profiler/tracer/exec_memory.h"
#include "profiler/tracer/hooks.h"
#include "profiler/tracer/sys.h"
#include "profiler/tracer/tracer_state.h"

extern char** environ;  // NOLINT: libc's

namespace tidemark::tracer {
namespace {

using Exec = int (*)(const char*, char* const*, char* const*);
using ExecAt = int (*)(int, const char*, char* const*, char* const*, int);
using ExecDescriptor = int (*)(int, char* const*, char* const*);
using Spawn = int (*)(pid_t*, const char*, const posix_spawn_file_actions_t*,
                      const posix_spawnattr_t*, char* const*, char* const*);

struct NextExec {
  Exec execve = nullptr;
  Exec execvpe = nullptr;
  ExecAt execveat = nullptr;
  ExecDescriptor fexecve = nullptr;
  Spawn posix_spawn = nullptr;
  Spawn posix_spawnp = nullptr;
};
constinit NextExec g_exec;

template <typename Function>
Function next(Function& kept, const char* name) noexcept {
  return kept != nullptr ? kept : reinterpret_cast<Function>(next_function(name));
}

// Calls `start` with the environment in which the program is traced, or is not.
template <typename Start>
int with_environment(const char* file, char* const* environment, Start start) {
  constexpr std::size_t kOnStack = 2048;
  const ChildEnvironment child(file, environment);
  const std::size_t entry_bytes = child.entries() * sizeof(char*);
  const auto start_with = [&](void* memory) {
    return start(child.fill(static_cast<char**>(memory), static_cast<char*>(memory) + entry_bytes));
  };
  // Where memory cannot be asked for, a filter would kill the program if it were traced: there the
  // stack has to do.
  if (entry_bytes + child.text_bytes() <= kOnStack || sys::calls_are_stopped()) {
    return start_with(__builtin_alloca(entry_bytes + child.text_bytes()));
  }
  const ExecMemory memory(entry_bytes + child.text_bytes());
  return memory.get() == nullptr ? start(environment) : start_with(memory.get());
}

// The same for a call that returns only on failure.
template <typename Start>
int replace_image(const char* file, char* const* environment, Start start) {
  bool was_stopped = false;
  const int result = with_environment(file, environment, [&](char* const* changed) {
    was_stopped = before_exec();
    return start(changed);
  });
  const int why = errno;
  after_failed_exec(was_stopped);
  errno = why;
  return result;
}

int run_execve(const char* path, char* const* arguments, char* const* environment) {
  const auto real = next(g_exec.execve, "execve");
  return replace_image(path, environment,
                       [&](char* const* changed) { return real(path, arguments, changed); });
}

int run_execvpe(const char* file, char* const* arguments, char* const* environment) {
  const auto real = next(g_exec.execvpe, "execvpe");
  return replace_image(file, environment,
                       [&](char* const* changed) { return real(file, arguments, changed); });
}

// False for nullptr, which the kernel refuses.
bool is_absolute(const char* path) noexcept { return path != nullptr && path[0] == '/'; }

std::size_t count_arguments(va_list arguments) {
  std::size_t count = 0;
  while (va_arg(arguments, char*) != nullptr) {
    ++count;
  }
  return count;
}

}  // namespace

void look_up_exec_functions(char** environment) noexcept {
  g_exec.execve = next(g_exec.execve, "execve");
  g_exec.execvpe = next(g_exec.execvpe, "execvpe");
  g_exec.execveat = next(g_exec.execveat, "execveat");
  g_exec.fexecve = next(g_exec.fexecve, "fexecve");
  g_exec.posix_spawn = next(g_exec.posix_spawn, "posix_spawn");
  g_exec.posix_spawnp = next(g_exec.posix_spawnp, "posix_spawnp");
  ChildEnvironment::set_up(environment);
}

}  // namespace tidemark::tracer

using namespace tidemark::tracer;  // NOLINT(google-build-using-namespace): C names follow

TIDEMARK_EXPORT int execve(const char* path, char* const* arguments, char* const* environment) {
  return run_execve(path, arguments, environment);
}

TIDEMARK_EXPORT int execv(const char* path, char* const* arguments) {
  return run_execve(path, arguments, environ);
}

TIDEMARK_EXPORT int execvpe(const char* file, char* const* arguments, char* const* environment) {
  return run_execvpe(file, arguments, environment);
}

TIDEMARK_EXPORT int execvp(const char* file, char* const* arguments) {
  return run_execvpe(file, arguments, environ);
}

TIDEMARK_EXPORT int execveat(int folder, const char* path, char* const* arguments,
                             char* const* environment, int flags) {
  const auto real = next(g_exec.execveat, "execveat");
  const bool by_name = folder == AT_FDCWD || is_absolute(path);
  return replace_image(by_name ? path : "", environment, [&](char* const* changed) {
    return real(folder, path, arguments, changed, flags);
  });
}

TIDEMARK_EXPORT int fexecve(int fd, char* const* arguments, char* const* environment) {
  const auto real = next(g_exec.fexecve, "fexecve");
  return replace_image("", environment,
                       [&](char* const* changed) { return real(fd, arguments, changed); });
}

// For the three functions with variable arguments: puts them into an array on the stack.
#define TIDEMARK_COLLECT_ARGUMENTS(first)                                                      \
  va_list list;                                                                                \
  va_start(list, first);                                                                       \
  va_list counting;                                                                            \
  va_copy(counting, list);                                                                     \
  const std::size_t count = 1 + count_arguments(counting);                                     \
  va_end(counting);                                                                            \
  auto** const arguments = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*))); \
  arguments[0] = const_cast<char*>(first); /* NOLINT: as the declaration of execv has it */    \
  for (std::size_t i = 1; i <= count; ++i) {                                                   \
    arguments[i] = va_arg(list, char*);                                                        \
  }

TIDEMARK_EXPORT int execl(const char* path, const char* first, ...) {
  TIDEMARK_COLLECT_ARGUMENTS(first)
  va_end(list);
  return run_execve(path, arguments, environ);
}

TIDEMARK_EXPORT int execlp(const char* file, const char* first, ...) {
  TIDEMARK_COLLECT_ARGUMENTS(first)
  va_end(list);
  return run_execvpe(file, arguments, environ);
}

TIDEMARK_EXPORT int execle(const char* path, const char* first, ...) {
  TIDEMARK_COLLECT_ARGUMENTS(first)
  char* const* const environment = va_arg(list, char* const*);
  va_end(list);
  return run_execve(path, arguments, environment);
}

TIDEMARK_EXPORT int posix_spawn(pid_t* pid, const char* path,
                                const posix_spawn_file_actions_t* actions,
                                const posix_spawnattr_t* attributes, char* const* arguments,
                                char* const* environment) {
  const auto real = next(g_exec.posix_spawn, "posix_spawn");
  return with_environment(path, environment, [&](char* const* changed) {
    return real(pid, path, actions, attributes, arguments, changed);
  });
}

TIDEMARK_EXPORT int posix_spawnp(pid_t* pid, const char* file,
                                 const posix_spawn_file_actions_t* actions,
                                 const posix_spawnattr_t* attributes, char* const* arguments,
                                 char* const* environment) {
  const auto real = next(g_exec.posix_spawnp, "posix_spawnp");
  return with_environment(file, environment, [&](char* const* changed) {
    return real(pid, file, actions, attributes, arguments, changed);
  });
}
