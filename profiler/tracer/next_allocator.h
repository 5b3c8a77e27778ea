// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tidemark::tracer {

// The functions that our hooks stand before: those of libc, or of an allocator that the program
// links or preloads after us. Until they are looked up, each entry looks them up first.
struct NextAllocator {
  void* (*malloc)(std::size_t);
  void (*free)(void*);
  void* (*calloc)(std::size_t, std::size_t);
  void* (*realloc)(void*, std::size_t);
  void* (*reallocarray)(void*, std::size_t, std::size_t);
  void* (*memalign)(std::size_t, std::size_t);
  int (*posix_memalign)(void**, std::size_t, std::size_t);
  void* (*aligned_alloc)(std::size_t, std::size_t);
  void* (*valloc)(std::size_t);
  void* (*pvalloc)(std::size_t);
  std::size_t (*malloc_usable_size)(void*);
};
[[gnu::visibility("hidden")]] extern constinit NextAllocator g_next;

// Looks the functions up. Safe to call again.
void look_up_allocator() noexcept;
// Whether the malloc that the process uses is neither ours nor one that we stand before: the
// program has an allocator linked into it, or preloads one before us. Its blocks never come here,
// but for those of functions that it lacks; these must reach whom they would reach without us.
[[gnu::visibility("hidden")]] extern constinit bool g_program_has_allocator;
// Whether an address lies in the library that has the next malloc: its own mappings hold blocks
// that are recorded already.
bool is_in_allocator(const void* address) noexcept;

// Blocks that were asked for while the functions were being looked up. They are never given back;
// free() knows them by the filter.
bool is_bootstrap_block(const void* block) noexcept;
std::size_t bootstrap_bytes(const void* block) noexcept;

}  // namespace tidemark::tracer
