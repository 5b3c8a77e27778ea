// SPDX-License-Identifier: Apache-2.0
// The functions that the tracer replaces. In a process that it was loaded into while that ran, the
// tool puts the tracer's functions of these names into the places where modules keep the addresses
// of the real ones. Freestanding, see trace_layout.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::wire {

inline constexpr const char* kHookNames[] = {"malloc",
                                             "free",
                                             "calloc",
                                             "realloc",
                                             "reallocarray",
                                             "memalign",
                                             "posix_memalign",
                                             "aligned_alloc",
                                             "valloc",
                                             "pvalloc",
                                             "free_sized",
                                             "free_aligned_sized",
                                             "mmap",
                                             "mmap64",
                                             "munmap",
                                             "mremap",
                                             "execve",
                                             "execv",
                                             "execvpe",
                                             "execvp",
                                             "execveat",
                                             "fexecve",
                                             "execl",
                                             "execlp",
                                             "execle",
                                             "posix_spawn",
                                             "posix_spawnp",
                                             "_Fork",
                                             "dlclose",
                                             "pthread_create",
                                             "prctl",
                                             "syscall",
                                             "cudaMalloc",
                                             "cudaMallocAsync",
                                             "cudaMallocHost",
                                             "cudaHostAlloc",
                                             "cudaHostRegister",
                                             "cudaFree",
                                             "cudaFreeAsync",
                                             "cudaFreeHost",
                                             "cudaHostUnregister"};
inline constexpr std::size_t kHooks = sizeof(kHookNames) / sizeof(kHookNames[0]);

// The tracer's functions for small objects of Python. The interpreter keeps those that it calls in
// tables of its own, four in a row behind a pointer: see PyMemAllocatorEx.
inline constexpr const char* kPythonHookNames[] = {
    "tidemark_python_malloc", "tidemark_python_calloc", "tidemark_python_realloc",
    "tidemark_python_free"};
inline constexpr std::size_t kPythonHooks = 4;
inline constexpr std::size_t kAllHooks = kHooks + kPythonHooks;

// Of all names in their order: tracer and tool may be of different versions.
constexpr std::uint64_t hash_of_hook_names() {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char* name : kHookNames) {
    for (; *name != '\0'; ++name) {
      hash = (hash ^ static_cast<unsigned char>(*name)) * 0x100000001b3;
    }
    hash *= 0x100000001b3;
  }
  return hash;
}

// The function of the tracer that the tool calls, and the tracer's table of the real functions.
inline constexpr const char* kAttachFunction = "tidemark_tracer_attach";
inline constexpr const char* kRealFunctionsTable = "tidemark_tracer_real_functions";

struct RealFunctions {
  std::uint64_t names;               // hash_of_hook_names()
  std::uint64_t address[kAllHooks];  // in the order of the names above; 0: there is none
  // Written by the tool: 1 while the interpreter calls the functions for small objects.
  std::uint64_t sees_python_objects;
};

// What the function returns.
enum class AttachResult : int {
  kStarted = 0,
  kBadRequest = 1,
  kAlreadyStarted = 2,
  kNoFile = 3,  // the trace file could not be created
};

}  // namespace tidemark::wire
