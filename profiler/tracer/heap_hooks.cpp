// SPDX-License-Identifier: Apache-2.0
// malloc and its family, as the target calls them. The fast path of each is one comparison and a
// jump to the real function; the slow path calls the recorder.
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/hooks.h"
#include "profiler/tracer/next_allocator.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/thread_state.h"
#include "profiler/tracer/tracer_state.h"
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {
namespace {

[[gnu::always_inline]] inline bool count_down(std::size_t bytes) noexcept {
  return t_thread.count_down(bytes);
}

[[gnu::always_inline]] inline bool is_not_recorded(const void* block) noexcept {
  return !g_recorder.filter().may_hold(block);
}

TIDEMARK_SLOW_PATH void* malloc_slow(std::size_t bytes) {
  void* const block = g_next.malloc(bytes);
  if (block != nullptr) {
    g_recorder.record_alloc(block, bytes, capture_registers());
  }
  return block;
}

TIDEMARK_SLOW_PATH void* calloc_slow(std::size_t count, std::size_t bytes) {
  void* const block = g_next.calloc(count, bytes);
  if (block != nullptr) {
    g_recorder.record_alloc(block, count * bytes, capture_registers());
  }
  return block;
}

// The old block is taken out of the tables first: another thread may own its address before realloc
// returns.
[[gnu::always_inline]] inline void* resize(void* block, std::size_t bytes,
                                           const Registers& caller) {
  Recorder::TakenBlock old;
  const bool known =
      block != nullptr && !is_not_recorded(block) && g_recorder.begin_realloc(block, old);
  void* const moved = g_next.realloc(block, bytes);
  if (moved != nullptr) {
    g_recorder.finish_realloc(moved, bytes, known ? &old : nullptr, caller);
  } else if (known && bytes != 0) {
    g_recorder.undo_realloc(block, old);
  } else if (known) {
    g_recorder.record_free_by_realloc(old);
  }
  return moved;
}

void* move_out_of_arena(void* block, std::size_t bytes) {
  void* const moved = g_next.malloc(bytes);
  if (moved != nullptr) {
    const std::size_t old = bootstrap_bytes(block);
    __builtin_memcpy(moved, block, old < bytes ? old : bytes);
  }
  return moved;
}

TIDEMARK_SLOW_PATH void* realloc_slow(void* block, std::size_t bytes) {
  if (is_bootstrap_block(block)) {
    return move_out_of_arena(block, bytes);
  }
  return resize(block, bytes, capture_registers());
}

TIDEMARK_SLOW_PATH void* memalign_slow(std::size_t alignment, std::size_t bytes) {
  void* const block = g_next.memalign(alignment, bytes);
  if (block != nullptr) {
    g_recorder.record_alloc(block, bytes, capture_registers());
  }
  return block;
}

TIDEMARK_SLOW_PATH void* aligned_alloc_slow(std::size_t alignment, std::size_t bytes) {
  void* const block = g_next.aligned_alloc(alignment, bytes);
  if (block != nullptr) {
    g_recorder.record_alloc(block, bytes, capture_registers());
  }
  return block;
}

TIDEMARK_SLOW_PATH int posix_memalign_slow(void** block, std::size_t alignment, std::size_t bytes) {
  const int failed = g_next.posix_memalign(block, alignment, bytes);
  if (failed == 0) {
    g_recorder.record_alloc(*block, bytes, capture_registers());
  }
  return failed;
}

TIDEMARK_SLOW_PATH void* valloc_slow(std::size_t bytes) {
  void* const block = g_next.valloc(bytes);
  if (block != nullptr) {
    g_recorder.record_alloc(block, bytes, capture_registers());
  }
  return block;
}

TIDEMARK_SLOW_PATH void* pvalloc_slow(std::size_t bytes) {
  void* const block = g_next.pvalloc(bytes);
  if (block != nullptr) {
    g_recorder.record_alloc(block, (bytes + 4095) & ~std::size_t{4095}, capture_registers());
  }
  return block;
}

TIDEMARK_SLOW_PATH void free_slow(void* block) {
  if (block == nullptr || is_bootstrap_block(block)) {
    return;
  }
  // Before the real function: once that returns, another thread may own this address.
  g_recorder.record_free(block);
  g_next.free(block);
}

}  // namespace
}  // namespace tidemark::tracer

using namespace tidemark::tracer;  // NOLINT(google-build-using-namespace): C names follow

TIDEMARK_EXPORT void* malloc(std::size_t bytes) {
  return count_down(bytes) ? g_next.malloc(bytes) : malloc_slow(bytes);
}

// No check for nullptr here: most calls have none, and both paths handle it.
TIDEMARK_EXPORT void free(void* block) {
  if (is_not_recorded(block)) [[likely]] {
    return g_next.free(block);
  }
  free_slow(block);
}

TIDEMARK_EXPORT void* calloc(std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all) || count_down(all)) {
    return g_next.calloc(count, bytes);
  }
  return calloc_slow(count, bytes);
}

TIDEMARK_EXPORT void* realloc(void* block, std::size_t bytes) {
  if ((block == nullptr || is_not_recorded(block)) && count_down(bytes)) {
    return g_next.realloc(block, bytes);
  }
  return realloc_slow(block, bytes);
}

TIDEMARK_EXPORT void* reallocarray(void* block, std::size_t count, std::size_t bytes) {
  if (g_program_has_allocator) {  // libc's calls the program's realloc; g_next.realloc is libc's
    return g_next.reallocarray(block, count, bytes);
  }
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  if ((block == nullptr || is_not_recorded(block)) && count_down(all)) {
    return g_next.realloc(block, all);
  }
  return realloc_slow(block, all);
}

TIDEMARK_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
  return count_down(bytes) ? g_next.memalign(alignment, bytes) : memalign_slow(alignment, bytes);
}

TIDEMARK_EXPORT int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  return count_down(bytes) ? g_next.posix_memalign(block, alignment, bytes)
                           : posix_memalign_slow(block, alignment, bytes);
}

TIDEMARK_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return count_down(bytes) ? g_next.aligned_alloc(alignment, bytes)
                           : aligned_alloc_slow(alignment, bytes);
}

TIDEMARK_EXPORT void* valloc(std::size_t bytes) {
  return count_down(bytes) ? g_next.valloc(bytes) : valloc_slow(bytes);
}

TIDEMARK_EXPORT void* pvalloc(std::size_t bytes) {
  return count_down(bytes) ? g_next.pvalloc(bytes) : pvalloc_slow(bytes);
}

// C23; as in glibc both call the free that the process uses, which may be the program's own.
TIDEMARK_EXPORT void free_sized(void* block, std::size_t /*bytes*/) { free(block); }
TIDEMARK_EXPORT void free_aligned_sized(void* block, std::size_t /*alignment*/,
                                        std::size_t /*bytes*/) {
  free(block);
}

TIDEMARK_EXPORT std::size_t malloc_usable_size(void* block) {
  return is_bootstrap_block(block) ? bootstrap_bytes(block) : g_next.malloc_usable_size(block);
}
