// SPDX-License-Identifier: Apache-2.0
// A program with an allocator linked into it, as with libjemalloc.a: it comes before every library.
// It has no reallocarray of its own, and refuses blocks that it did not hand out.
#include <sys/mman.h>

#include <cstring>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::size_t kHeader = 16;
alignas(16) char g_pool[16U << 20U];
std::size_t g_used = 0;

bool is_ours(const void* block) {
  const auto* const at = static_cast<const char*>(block);
  return at >= g_pool && at < g_pool + sizeof(g_pool);
}

void refuse_foreign(const void* block) {
  if (block != nullptr && !is_ours(block)) {
    std::abort();
  }
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) {
  char* const block = g_pool + g_used + kHeader;
  std::memcpy(block - kHeader, &bytes, sizeof(bytes));
  g_used += (bytes + 2 * kHeader - 1) / kHeader * kHeader;
  return block;
}

void free(void* block) { refuse_foreign(block); }

void* calloc(std::size_t count, std::size_t bytes) { return malloc(count * bytes); }

void* realloc(void* block, std::size_t bytes) {
  refuse_foreign(block);
  void* const moved = malloc(bytes);
  if (block != nullptr) {
    std::size_t old = 0;
    std::memcpy(&old, static_cast<char*>(block) - kHeader, sizeof(old));
    std::memcpy(moved, block, old < bytes ? old : bytes);
  }
  return moved;
}

[[gnu::weak]] void free_sized(void* block, std::size_t bytes);
}

VICTIM_SITE void map_a_page() {
  seen(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

int main() {
  constexpr int kRounds = 1000;  // so that the tracer's slow path is taken as well
  for (int i = 0; i < kRounds; ++i) {
    auto* const block = static_cast<char*>(std::malloc(100));
    std::memset(block, 'x', 100);
    auto* const moved = static_cast<char*>(::reallocarray(block, 100, 10));
    void* const fresh = ::reallocarray(nullptr, 10, 10);
    if (!is_ours(moved) || !is_ours(fresh) || moved[99] != 'x') {
      return 4;
    }
    std::free(moved);
    if (free_sized != nullptr) {
      free_sized(fresh, 100);
    }
  }
  map_a_page();
  print_held("own_allocator", {{"map_a_page", 4096, 1, "map"}});
}
