// SPDX-License-Identifier: Apache-2.0
// Where the library begins and ends its life in a process.
#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <cerrno>
#include <cstdint>

#include "profiler/tracer/cuda_hooks.h"
#include "profiler/tracer/exec_hooks.h"
#include "profiler/tracer/export.h"
#include "profiler/tracer/filter_hooks.h"
#include "profiler/tracer/life.h"
#include "profiler/tracer/next_allocator.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/unwind/rule_cache.h"
#include "profiler/wire/trace_layout.h"
#include "profiler/wire/trace_request.h"

namespace tidemark::tracer {
namespace {

using Close = int (*)(void*);
constinit Close g_next_dlclose = nullptr;

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

// The first constructor of the process (-z initfirst): what those of other libraries allocate is to
// be seen. Even libc's has not run, so the environment is taken from where the dynamic linker hands
// it over.
[[gnu::constructor]] void library_loaded(int /*count*/, char** /*arguments*/, char** environment) {
  find_next_allocator();
  if (g_has_own_allocator) {
    g_recorder.leave_heap_out();
  }
  g_next_dlclose = reinterpret_cast<Close>(dlsym(RTLD_NEXT, "dlclose"));
  find_next_exec(environment);
  find_next_filter();
  // A program with more rights than its user has is left alone.
  begin(getauxval(AT_SECURE) != 0 ? nullptr : value_in(environment, wire::kRequestVariable));
}

[[gnu::destructor]] void library_unloaded() { end(); }

// Where the module of a handle begins; 0: not known.
std::uint64_t beginning_of(void* handle) noexcept {
  link_map* linked = nullptr;
  Dl_info info = {};
  if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&linked)) != 0 ||
      linked->l_ld == nullptr || dladdr(linked->l_ld, &info) == 0) {
    return 0;
  }
  return reinterpret_cast<std::uint64_t>(info.dli_fbase);
}

}  // namespace
}  // namespace tidemark::tracer

// What was known of the code that is gone must not be believed of code that comes to its place.
TIDEMARK_EXPORT int dlclose(void* handle) {
  using namespace tidemark::tracer;  // NOLINT(google-build-using-namespace): a C name
  if (g_next_dlclose == nullptr) {
    g_next_dlclose = reinterpret_cast<Close>(dlsym(RTLD_NEXT, "dlclose"));
  }
  const std::uint64_t begin = beginning_of(handle);
  const int result = g_next_dlclose(handle);
  const int why = errno;
  forget_rules();
  forget_cuda_functions();
  g_recorder.modules().closed(begin);
  errno = why;
  return result;
}
