// SPDX-License-Identifier: Apache-2.0
// What the files that define hooks share: how a hook is declared, and the lookups of the real
// functions, all made by the constructor of the library.
#pragma once

#include <cerrno>

#include "profiler/wire/hook_names.h"

// A symbol that the target uses in place of its own; tracer.map lists them too.
#define TIDEMARK_EXPORT extern "C" [[gnu::visibility("default"), gnu::used]]

// The slow path of a hook: a function of its own that the hook jumps to, so that its caller is the
// caller of the hook and capture_registers() works in it.
#define TIDEMARK_SLOW_PATH [[gnu::noinline]]

// For the tool, which reads and writes it from outside.
extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming): a C name
[[gnu::visibility("default")]] extern tidemark::wire::RealFunctions tidemark_tracer_real_functions;
}

namespace tidemark::tracer {

// What libc returns for what the kernel returned.
inline long set_errno(long result) noexcept {
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

// The real function of this name: the next one behind ours, or, in a process that the library was
// loaded into while it ran, the one that the process uses. nullptr: there is none.
void* next_function(const char* name) noexcept;
// The library was not preloaded: see next_function().
void set_loaded_late() noexcept;

void look_up_map_functions() noexcept;
void look_up_dlclose() noexcept;
// Early, because a child of vfork must not call the dynamic linker.
void look_up_exec_functions(char** environment) noexcept;
void look_up_syscall_functions() noexcept;
void look_up_thread_functions() noexcept;

// The allocator of an interpreter that runs already: its four functions, to be called in a thread
// that may call anything. False: there is none, or its objects come from malloc.
bool look_up_python_allocator(void* (&functions)[4]) noexcept;
// Whether a call of mmap from there gets memory for small objects that are recorded one by one.
bool maps_recorded_objects(const void* caller) noexcept;

// The real dlclose, for a reference that the tracer itself took.
int real_dlclose(void* handle) noexcept;
// A library was unloaded: the CUDA functions are looked up again at their next calls.
void forget_cuda_functions() noexcept;

}  // namespace tidemark::tracer
