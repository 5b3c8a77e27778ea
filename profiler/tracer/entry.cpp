// SPDX-License-Identifier: Apache-2.0
// The constructor and the destructor of the library.
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "profiler/tracer/glibc.h"
#include "profiler/tracer/hooks.h"
#include "profiler/tracer/next_allocator.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/tracer_state.h"
#include "profiler/wire/trace_layout.h"
#include "profiler/wire/trace_request.h"

namespace tidemark::tracer {
namespace {

// The value of a variable in an environment.
const char* value_in(char** environment, const char* name) noexcept {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const char* entry = *environment;
    if (wire::detail::take_word(entry, name) && *entry == '=') {
      return entry + 1;
    }
  }
  return nullptr;
}

// Sets what libc's constructor gets from the dynamic linker. If libunwind is loaded, that
// constructor runs early and without arguments, and leaves these variables as they are.
void prepare_libc(int count, char** arguments, char** environment) noexcept {
  environ = environment;
  if (count > 0 && arguments[0] != nullptr) {
    char* const slash = std::strrchr(arguments[0], '/');
    program_invocation_name = arguments[0];
    program_invocation_short_name = slash == nullptr ? arguments[0] : slash + 1;
  }
}

// The first constructor of the process (-z initfirst), so that allocations of other constructors
// are recorded. Even libc's has not run: the environment comes from the dynamic linker.
[[gnu::constructor]] void library_loaded(int count, char** arguments, char** environment) {
  if (is_glibc()) {
    prepare_libc(count, arguments, environment);
  } else {
    environment = nullptr;  // others pass no arguments; without a request the tracer stays off
  }
  look_up_allocator();
  if (g_program_has_allocator) {
    g_recorder.exclude_heap();
  }
  look_up_map_functions();
  look_up_dlclose();
  look_up_exec_functions(environment);
  look_up_syscall_functions();
  // Not in programs that run with more rights than their user has.
  start_tracer(getauxval(AT_SECURE) != 0 ? nullptr : value_in(environment, wire::kRequestVariable));
}

[[gnu::destructor]] void library_unloaded() { on_process_exit(); }

}  // namespace
}  // namespace tidemark::tracer
