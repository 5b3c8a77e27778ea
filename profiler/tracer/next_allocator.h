// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tidemark::tracer {

// The functions behind our hooks: those of libc, or of an allocator that the program is linked to
// or preloads after us. Before look_up_allocator() each entry is a function that calls it.
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

// May be called again.
void look_up_allocator() noexcept;
// Whether the process uses a malloc that is neither ours nor behind ours: the program has an
// allocator linked into it, or preloads one before us. Its blocks do not come here. Calls of
// functions that it lacks do, and must reach the function that they would reach without us.
[[gnu::visibility("hidden")]] extern constinit bool g_program_has_allocator;
// Whether an address is in the library with the next malloc. The mappings that it makes hold blocks
// which are recorded already.
bool is_in_allocator(const void* address) noexcept;

// Blocks that were allocated during the lookup, from a static arena. They are never freed; the
// filter makes free() take its slow path for them.
bool is_bootstrap_block(const void* block) noexcept;
std::size_t bootstrap_bytes(const void* block) noexcept;

}  // namespace tidemark::tracer
