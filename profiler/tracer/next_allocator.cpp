// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/next_allocator.h"

#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "profiler/tracer/glibc.h"
#include "profiler/tracer/hooks.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/tracer_state.h"

extern "C" {
// The first address of the library.
[[gnu::visibility("hidden")]] extern const char __ehdr_start[];  // NOLINT: the linker's name
}

namespace tidemark::tracer {
namespace {

// For older dynamic linkers, whose dlsym allocates while malloc is being looked up.
alignas(64) constinit char g_arena[64 * 1024] = {};
constinit std::atomic<std::size_t> g_arena_used = 0;
constinit thread_local bool t_looking_up = false;
constinit const char* g_allocator_begin = nullptr;
constinit const char* g_allocator_end = nullptr;

constexpr std::size_t kHeader = 16;  // before each block: its size

void* arena_block(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t align = alignment < kHeader ? kHeader : alignment;
  const std::size_t room = bytes + align + kHeader;
  const std::size_t at =
      room < sizeof(g_arena) ? g_arena_used.fetch_add(room, std::memory_order_relaxed) : room;
  if (room >= sizeof(g_arena) || at > sizeof(g_arena) - room) {
    return is_glibc() ? __libc_memalign(align, bytes) : nullptr;  // the arena is full
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(g_arena + at + kHeader);
  char* const block = g_arena + at + kHeader + ((align - begin % align) % align);
  __builtin_memcpy(block - kHeader, &bytes, sizeof(bytes));
  g_recorder.filter().pin(block);  // so that free() takes its slow path
  return block;
}

// Each of these is called until the real function is looked up.
bool look_up_now() noexcept {
  if (t_looking_up) {
    return false;
  }
  look_up_allocator();
  return true;
}

void* early_malloc(std::size_t bytes) {
  return look_up_now() ? g_next.malloc(bytes) : arena_block(bytes, 0);
}
void early_free(void* block) {
  if (look_up_now() && !is_bootstrap_block(block)) {
    g_next.free(block);
  }
}
void* early_calloc(std::size_t count, std::size_t bytes) {
  if (look_up_now()) {
    return g_next.calloc(count, bytes);
  }
  std::size_t all = 0;
  return __builtin_mul_overflow(count, bytes, &all) ? nullptr : arena_block(all, 0);
}
void* early_realloc(void* block, std::size_t bytes) {
  if (look_up_now()) {
    return g_next.realloc(block, bytes);
  }
  void* const moved = arena_block(bytes, 0);
  if (moved != nullptr && block != nullptr) {
    const std::size_t old = bootstrap_bytes(block);
    __builtin_memcpy(moved, block, old < bytes ? old : bytes);
  }
  return moved;
}
void* early_reallocarray(void* block, std::size_t count, std::size_t bytes) {
  if (look_up_now()) {
    return g_next.reallocarray(block, count, bytes);
  }
  std::size_t all = 0;
  return __builtin_mul_overflow(count, bytes, &all) ? nullptr : early_realloc(block, all);
}
void* early_memalign(std::size_t alignment, std::size_t bytes) {
  return look_up_now() ? g_next.memalign(alignment, bytes) : arena_block(bytes, alignment);
}
int early_posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  if (look_up_now()) {
    return g_next.posix_memalign(block, alignment, bytes);
  }
  *block = arena_block(bytes, alignment);
  return *block == nullptr ? ENOMEM : 0;
}
void* early_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return look_up_now() ? g_next.aligned_alloc(alignment, bytes) : arena_block(bytes, alignment);
}
void* early_valloc(std::size_t bytes) {
  return look_up_now() ? g_next.valloc(bytes) : arena_block(bytes, 4096);
}
void* early_pvalloc(std::size_t bytes) {
  return look_up_now() ? g_next.pvalloc(bytes) : arena_block(bytes, 4096);
}
std::size_t early_usable_size(void* block) {
  return look_up_now() ? g_next.malloc_usable_size(block) : bootstrap_bytes(block);
}

// For allocators that lack it.
void* reallocarray_by_realloc(void* block, std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  return g_next.realloc(block, all);
}

// If it is not found, `function` stays as it is, but for an early_ one, which would come here
// again.
template <typename Function>
void look_up(Function& function, const char* name, Function early, Function missing) noexcept {
  if (auto* const found = reinterpret_cast<Function>(next_function(name)); found != nullptr) {
    function = found;
  } else if (function == early) {
    function = missing;
  }
}

void* no_block(std::size_t /*bytes*/) {
  errno = ENOMEM;
  return nullptr;
}
void* no_block_of(std::size_t /*alignment*/, std::size_t /*bytes*/) {
  errno = ENOMEM;
  return nullptr;
}
int no_posix_block(void** /*block*/, std::size_t /*alignment*/, std::size_t /*bytes*/) {
  return ENOMEM;
}
std::size_t no_size(void* /*block*/) { return 0; }

void find_allocator_range() noexcept {
  Dl_info info = {};
  link_map* linked = nullptr;
  void* const function = reinterpret_cast<void*>(g_next.malloc);
  if (dladdr1(function, &info, reinterpret_cast<void**>(&linked), RTLD_DL_LINKMAP) == 0) {
    return;
  }
  const auto* const file = static_cast<const ElfW(Ehdr)*>(info.dli_fbase);
  const auto* const base = static_cast<const char*>(info.dli_fbase);
  const auto* const headers = reinterpret_cast<const ElfW(Phdr)*>(base + file->e_phoff);
  std::uint64_t end = 0;
  for (unsigned i = 0; i < file->e_phnum; ++i) {
    const std::uint64_t stop = headers[i].p_vaddr + headers[i].p_memsz;
    end = headers[i].p_type == PT_LOAD && stop > end ? stop : end;
  }
  g_allocator_begin = base;
  g_allocator_end = reinterpret_cast<const char*>(linked->l_addr + end);
}

// A program that is not position independent may have a PLT stub as the address of a function,
// which jumps to the function that is bound; the symbol of a stub is undefined.
bool is_stub_or_own(void* function) noexcept {
  Dl_info info = {};
  ElfW(Sym)* symbol = nullptr;
  return dladdr1(function, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) == 0 ||
         (symbol != nullptr && symbol->st_shndx == SHN_UNDEF) ||
         info.dli_fbase == static_cast<const void*>(__ehdr_start);
}

bool program_has_malloc() noexcept {
  void* const used = dlsym(RTLD_DEFAULT, "malloc");
  return used != nullptr && used != reinterpret_cast<void*>(g_next.malloc) && !is_stub_or_own(used);
}

constinit bool g_is_loaded_late = false;

}  // namespace

constinit bool g_program_has_allocator = false;

constinit NextAllocator g_next = {early_malloc,         early_free,          early_calloc,
                                  early_realloc,        early_reallocarray,  early_memalign,
                                  early_posix_memalign, early_aligned_alloc, early_valloc,
                                  early_pvalloc,        early_usable_size};

void* next_function(const char* name) noexcept {
  if (g_is_loaded_late) {
    void* const used = dlsym(RTLD_DEFAULT, name);
    if (used != nullptr && !is_stub_or_own(used)) {
      return used;
    }
  }
  return dlsym(RTLD_NEXT, name);
}

void set_loaded_late() noexcept { g_is_loaded_late = true; }

void look_up_allocator() noexcept {
  if (t_looking_up) {
    return;
  }
  t_looking_up = true;
  NextAllocator found = g_next;
  look_up(found.malloc, "malloc", early_malloc, no_block);
  look_up(
      found.free, "free", early_free, +[](void* /*block*/) {});
  look_up(found.calloc, "calloc", early_calloc, no_block_of);
  look_up(
      found.realloc, "realloc", early_realloc,
      +[](void* /*block*/, std::size_t bytes) { return no_block(bytes); });
  look_up(found.reallocarray, "reallocarray", early_reallocarray, reallocarray_by_realloc);
  look_up(found.memalign, "memalign", early_memalign, no_block_of);
  look_up(found.posix_memalign, "posix_memalign", early_posix_memalign, no_posix_block);
  look_up(found.aligned_alloc, "aligned_alloc", early_aligned_alloc, no_block_of);
  look_up(found.valloc, "valloc", early_valloc, no_block);
  look_up(found.pvalloc, "pvalloc", early_pvalloc, no_block);
  look_up(found.malloc_usable_size, "malloc_usable_size", early_usable_size, no_size);
  g_next = found;
  if (is_glibc()) {
    find_allocator_range();
    g_program_has_allocator = program_has_malloc();
  }
  t_looking_up = false;
}

bool is_in_allocator(const void* address) noexcept {
  const auto* const at = static_cast<const char*>(address);
  return at >= g_allocator_begin && at < g_allocator_end;
}

bool is_bootstrap_block(const void* block) noexcept {
  const auto* const at = static_cast<const char*>(block);
  return at >= g_arena && at < g_arena + sizeof(g_arena);
}

std::size_t bootstrap_bytes(const void* block) noexcept {
  std::size_t bytes = 0;
  if (block != nullptr) {
    __builtin_memcpy(&bytes, static_cast<const char*>(block) - kHeader, sizeof(bytes));
  }
  return bytes;
}

}  // namespace tidemark::tracer
