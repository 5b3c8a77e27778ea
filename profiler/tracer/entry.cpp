// SPDX-License-Identifier: Apache-2.0
// Where the library begins and ends its life in a process.
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

// What libc takes from the dynamic linker when its constructor runs. Loading libunwind lets it run
// early, and then it gets nothing: its variables stay as they are.
void prepare_libc(int count, char** arguments, char** environment) noexcept {
  environ = environment;
  if (count > 0 && arguments[0] != nullptr) {
    char* const slash = std::strrchr(arguments[0], '/');
    program_invocation_name = arguments[0];
    program_invocation_short_name = slash == nullptr ? arguments[0] : slash + 1;
  }
}

// The first constructor of the process (-z initfirst): what those of other libraries allocate is to
// be seen. Even libc's has not run, so the environment is taken from where the dynamic linker hands
// it over.
[[gnu::constructor]] void library_loaded(int count, char** arguments, char** environment) {
  prepare_libc(count, arguments, environment);
  look_up_allocator();
  if (g_program_has_allocator) {
    g_recorder.exclude_heap();
  }
  look_up_map_functions();
  look_up_dlclose();
  look_up_exec_functions(environment);
  look_up_syscall_functions();
  // A program with more rights than its user has is left alone.
  start_tracer(getauxval(AT_SECURE) != 0 ? nullptr : value_in(environment, wire::kRequestVariable));
}

[[gnu::destructor]] void library_unloaded() { on_process_exit(); }

}  // namespace
}  // namespace tidemark::tracer
