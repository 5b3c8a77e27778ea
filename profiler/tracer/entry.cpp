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
#include "profiler/wire/hook_names.h"
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
// constructor runs early and without arguments, and leaves these variables as they are. In a
// process that runs already they are its own.
void prepare_libc(int count, char** arguments, char** environment) noexcept {
  if (program_invocation_name != nullptr && program_invocation_name[0] != '\0') {
    return;
  }
  environ = environment;
  if (count > 0 && arguments[0] != nullptr) {
    char* const slash = std::strrchr(arguments[0], '/');
    program_invocation_name = arguments[0];
    program_invocation_short_name = slash == nullptr ? arguments[0] : slash + 1;
  }
}

void look_up_functions(char** environment) noexcept {
  look_up_allocator();
  look_up_map_functions();
  look_up_dlclose();
  look_up_exec_functions(environment);
  look_up_syscall_functions();
  look_up_thread_functions();
}

// The first constructor of the process (-z initfirst), so that allocations of other constructors
// are recorded. Even libc's has not run: the environment comes from the dynamic linker.
[[gnu::constructor]] void library_loaded(int count, char** arguments, char** environment) {
  if (is_glibc()) {
    prepare_libc(count, arguments, environment);
  } else {
    environment = nullptr;  // others pass no arguments; without a request the tracer stays off
  }
  look_up_functions(environment);
  // Not in programs that run with more rights than their user has.
  const char* const request =
      getauxval(AT_SECURE) != 0 ? nullptr : value_in(environment, wire::kRequestVariable);
  if (request != nullptr && g_program_has_allocator) {
    g_recorder.exclude_heap();
  }
  start_tracer(request);
}

[[gnu::destructor]] void library_unloaded() { on_process_exit(); }

}  // namespace
}  // namespace tidemark::tracer

using namespace tidemark;  // NOLINT(google-build-using-namespace): C names follow

// The addresses are set by the function below.
extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming): a C name
[[gnu::visibility("default")]] constinit wire::RealFunctions tidemark_tracer_real_functions = {
    wire::hash_of_hook_names(), {}, 0};
}

// For a process that runs already: called by the tool, in a thread of the process that was stopped
// at a place where it may call anything. Nothing calls our hooks yet: the tool makes modules do so
// afterwards. An int of wire::AttachResult.
TIDEMARK_EXPORT int tidemark_tracer_attach(const char* request) {
  const int saved_errno = errno;
  tracer::set_loaded_late();
  tracer::look_up_functions(environ);
  for (std::size_t i = 0; i < wire::kHooks; ++i) {
    tidemark_tracer_real_functions.address[i] =
        reinterpret_cast<std::uint64_t>(tracer::next_function(wire::kHookNames[i]));
  }
  if (void* python[wire::kPythonHooks] = {}; tracer::look_up_python_allocator(python)) {
    for (std::size_t i = 0; i < wire::kPythonHooks; ++i) {
      tidemark_tracer_real_functions.address[wire::kHooks + i] =
          reinterpret_cast<std::uint64_t>(python[i]);
    }
  }
  const wire::AttachResult result = tracer::attach_tracer(request);
  errno = saved_errno;
  return static_cast<int>(result);
}
