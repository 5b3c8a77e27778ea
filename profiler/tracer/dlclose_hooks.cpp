// SPDX-License-Identifier: Apache-2.0
// dlclose: drops what is cached about unloaded code, because other code may be loaded at its
// addresses.
#include <dlfcn.h>
#include <link.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/hooks.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/tracer_state.h"
#include "profiler/tracer/unwind/rule_cache.h"

namespace tidemark::tracer {
namespace {

using Close = int (*)(void*);
constinit Close g_next_dlclose = nullptr;

// The first address of the module of a handle; 0: not known.
std::uint64_t start_of_module(void* handle) noexcept {
  link_map* linked = nullptr;
  Dl_info info = {};
  if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&linked)) != 0 ||
      linked->l_ld == nullptr || dladdr(linked->l_ld, &info) == 0) {
    return 0;
  }
  return reinterpret_cast<std::uint64_t>(info.dli_fbase);
}

// A number that changes when something is unloaded; most calls of dlclose only drop one of several
// references. False: not known, because to ask takes a lock of the dynamic linker, and in a forked
// process a thread of the parent may have held it.
bool unload_count(std::uint64_t& count) noexcept {
  if (!is_on_and_never_forked()) {
    return false;
  }
  const auto store = [](dl_phdr_info* info, std::size_t /*bytes*/, void* result) {
    *static_cast<std::uint64_t*>(result) = info->dlpi_subs;
    return 1;  // the same for all modules: the first one is enough
  };
  return dl_iterate_phdr(store, &count) == 1;
}

}  // namespace

void look_up_dlclose() noexcept {
  g_next_dlclose = reinterpret_cast<Close>(next_function("dlclose"));
}

int real_dlclose(void* handle) noexcept {
  if (g_next_dlclose == nullptr) {
    look_up_dlclose();
  }
  return g_next_dlclose(handle);
}

}  // namespace tidemark::tracer

TIDEMARK_EXPORT int dlclose(void* handle) {
  using namespace tidemark::tracer;  // NOLINT(google-build-using-namespace): a C name
  const std::uint64_t begin = start_of_module(handle);
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  const bool is_known = unload_count(before);
  g_recorder.modules().before_dlclose();
  const int result = real_dlclose(handle);
  const int why = errno;
  if (!is_known || !unload_count(after) || after != before) {
    forget_rules();
    forget_cuda_functions();
    g_recorder.modules().on_dlclose(begin);
  }
  g_recorder.modules().after_dlclose();
  errno = why;
  return result;
}
