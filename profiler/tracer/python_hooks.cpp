// SPDX-License-Identifier: Apache-2.0
// Small objects of Python, one by one, in a process that runs already. They come from the
// interpreter's own allocator, whose functions stand in a table; the tool puts ours there. All are
// called with the interpreter's lock held.
//
// Larger objects, and all where that allocator has no room, come from malloc, whose hooks record
// them: here they only pass through.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/hooks.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/thread_state.h"
#include "profiler/tracer/tracer_state.h"
#include "profiler/tracer/unwind/stack_trace.h"
#include "profiler/wire/hook_names.h"

namespace tidemark::tracer {
namespace {

constexpr std::size_t kMostSmallBytes = 512;

// As CPython has it since 3.5: PyMemAllocatorEx.
struct PythonAllocator {
  void* context = nullptr;
  void* (*malloc)(void*, std::size_t) = nullptr;
  void* (*calloc)(void*, std::size_t, std::size_t) = nullptr;
  void* (*realloc)(void*, void*, std::size_t) = nullptr;
  void (*free)(void*, void*) = nullptr;
};
// PyObjectArenaAllocator.
struct ArenaAllocator {
  void* context = nullptr;
  void* (*alloc)(void*, std::size_t) = nullptr;
  void (*free)(void*, void*, std::size_t) = nullptr;
};
constexpr int kRawDomain = 0;
constexpr int kObjectDomain = 2;

constinit PythonAllocator g_python = {};
constinit std::uint64_t g_arena_function = 0;

TIDEMARK_SLOW_PATH void* python_malloc_slow(void* context, std::size_t bytes) {
  void* const block = g_python.malloc(context, bytes);
  if (block != nullptr) {
    g_recorder.record_alloc(block, bytes, capture_registers());
  }
  return block;
}

TIDEMARK_SLOW_PATH void* python_calloc_slow(void* context, std::size_t count, std::size_t bytes) {
  void* const block = g_python.calloc(context, count, bytes);
  if (block != nullptr) {
    g_recorder.record_alloc(block, count * bytes, capture_registers());
  }
  return block;
}

TIDEMARK_SLOW_PATH void* python_realloc_slow(void* context, void* block, std::size_t bytes) {
  Recorder::TakenBlock old;
  const bool is_known = block != nullptr && g_recorder.filter().may_hold(block) &&
                        g_recorder.begin_realloc(block, old);
  void* const moved = g_python.realloc(context, block, bytes);
  if (moved == nullptr) {
    if (is_known) {
      g_recorder.undo_realloc(block, old);
    }
  } else if (bytes > kMostSmallBytes) {  // from malloc, and recorded as such
    if (is_known) {
      g_recorder.record_free_by_realloc(old);
    }
  } else {
    g_recorder.finish_realloc(moved, bytes, is_known ? &old : nullptr, capture_registers());
  }
  return moved;
}

TIDEMARK_SLOW_PATH void python_free_slow(void* context, void* block) {
  g_recorder.record_free(block);  // before another one may have this address
  g_python.free(context, block);
}

}  // namespace

bool look_up_python_allocator(void* (&functions)[4]) noexcept {
  const auto get =
      reinterpret_cast<void (*)(int, PythonAllocator*)>(dlsym(RTLD_DEFAULT, "PyMem_GetAllocator"));
  const auto get_arena = reinterpret_cast<void (*)(ArenaAllocator*)>(
      dlsym(RTLD_DEFAULT, "PyObject_GetArenaAllocator"));
  if (get == nullptr || get_arena == nullptr) {
    return false;
  }
  PythonAllocator raw;
  ArenaAllocator arena;
  get(kRawDomain, &raw);
  get(kObjectDomain, &g_python);
  get_arena(&arena);
  if (g_python.malloc == nullptr || g_python.malloc == raw.malloc) {
    return false;
  }
  g_arena_function = reinterpret_cast<std::uint64_t>(arena.alloc);
  functions[0] = reinterpret_cast<void*>(g_python.malloc);
  functions[1] = reinterpret_cast<void*>(g_python.calloc);
  functions[2] = reinterpret_cast<void*>(g_python.realloc);
  functions[3] = reinterpret_cast<void*>(g_python.free);
  return true;
}

bool maps_recorded_objects(const void* caller) noexcept {
  constexpr std::uint64_t kFunctionBytes = 128;  // it does little else
  const auto at = reinterpret_cast<std::uint64_t>(caller);
  return g_arena_function != 0 && at - g_arena_function < kFunctionBytes &&
         std::atomic_ref(tidemark_tracer_real_functions.sees_python_objects)
                 .load(std::memory_order_relaxed) != 0;
}

}  // namespace tidemark::tracer

using namespace tidemark::tracer;  // NOLINT(google-build-using-namespace): C names follow

TIDEMARK_EXPORT void* tidemark_python_malloc(void* context, std::size_t bytes) {
  return bytes > kMostSmallBytes || t_thread.count_down(bytes) ? g_python.malloc(context, bytes)
                                                               : python_malloc_slow(context, bytes);
}

TIDEMARK_EXPORT void* tidemark_python_calloc(void* context, std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  return __builtin_mul_overflow(count, bytes, &all) || all > kMostSmallBytes ||
                 t_thread.count_down(all)
             ? g_python.calloc(context, count, bytes)
             : python_calloc_slow(context, count, bytes);
}

TIDEMARK_EXPORT void* tidemark_python_realloc(void* context, void* block, std::size_t bytes) {
  const bool may_be_known = block != nullptr && g_recorder.filter().may_hold(block);
  return !may_be_known && (bytes > kMostSmallBytes || t_thread.count_down(bytes))
             ? g_python.realloc(context, block, bytes)
             : python_realloc_slow(context, block, bytes);
}

TIDEMARK_EXPORT void tidemark_python_free(void* context, void* block) {
  if (block == nullptr || !g_recorder.filter().may_hold(block)) {
    return g_python.free(context, block);
  }
  python_free_slow(context, block);
}
