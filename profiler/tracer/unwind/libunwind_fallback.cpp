// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/unwind/libunwind_fallback.h"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>

namespace tidemark::tracer {
namespace {

using Backtrace = int (*)(void** buffer, int size);

constexpr std::size_t kOwnFrames = 16;  // between the hook and unw_backtrace, at most

constinit std::atomic<Backtrace> g_backtrace{nullptr};

}  // namespace

bool load_libunwind(const char* path) noexcept {
  if (g_backtrace.load(std::memory_order_relaxed) != nullptr) {
    return true;
  }
  void* const library = dlopen(path, RTLD_LOCAL | RTLD_NOW);
  if (library == nullptr) {
    return false;
  }
  void* const symbol = dlsym(library, "unw_backtrace");
  if (symbol == nullptr) {
    dlclose(library);
    return false;
  }
  g_backtrace.store(reinterpret_cast<Backtrace>(symbol), std::memory_order_release);
  return true;
}

LibunwindResult unwind_with_libunwind(const Registers& registers, StackTrace& trace) noexcept {
  const Backtrace backtrace = g_backtrace.load(std::memory_order_acquire);
  assign_frames(trace, &registers.ip, 1);
  if (backtrace == nullptr) {
    return LibunwindResult::kNotLoaded;
  }
  const int saved_errno = errno;
  void* buffer[kMaxFrames + kOwnFrames + 1];
  constexpr int kSize = sizeof(buffer) / sizeof(buffer[0]);
  const int count = backtrace(buffer, kSize);
  errno = saved_errno;
  for (int i = 0; i < count && i < kSize; ++i) {
    const auto pcs = reinterpret_cast<const std::uint64_t*>(buffer + i);
    if (*pcs == registers.ip) {
      assign_frames(trace, pcs, static_cast<std::size_t>(count - i));
      return LibunwindResult::kDone;
    }
  }
  return LibunwindResult::kNoStack;
}

}  // namespace tidemark::tracer
