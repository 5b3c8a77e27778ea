// SPDX-License-Identifier: Apache-2.0
// A timer interrupts allocations, and its handler forks: the child returns from the handler into
// what was interrupted, allocates once more and ends. Prints how many children ended otherwise.
// handler_forks malloc|realloc|mremap: what takes most of the time.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <utility>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

namespace {

constexpr int kChildren = 100;
volatile std::sig_atomic_t g_is_child = 0;
int g_children[kChildren];
volatile std::sig_atomic_t g_forked = 0;

void fork_here(int /*signal*/) {
  if (g_is_child != 0 || g_forked == kChildren) {
    return;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    g_is_child = 1;
  } else {
    g_children[g_forked] = child;
    g_forked = g_forked + 1;
  }
}

// More call stacks than a child has room for at first: the numbers of later ones are beyond it.
[[gnu::noinline]] void use_many_stacks(int depth, unsigned path) {
  if (depth == 0) {
    seen(std::malloc(10));
  } else if ((path & 1U) != 0) {
    use_many_stacks(depth - 1, path >> 1U);
    asm volatile("nop");
  } else {
    use_many_stacks(depth - 1, path >> 1U);
    asm volatile("" ::: "memory");
  }
}

constexpr std::size_t kLarge = 4U << 20U;

void allocate() { std::free(seen(std::malloc(100))); }

// Copies: another block follows the one that grows.
void reallocate() {
  void* const block = seen(std::malloc(kLarge));
  void* const next = seen(std::malloc(100));
  std::free(seen(std::realloc(block, 2 * kLarge)));
  std::free(next);
}

// To and fro between two places.
void move_mapping() {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  static void* from = nullptr;
  static void* to = nullptr;
  if (from == nullptr) {
    from = ::mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    to = ::mmap(nullptr, kLarge, PROT_NONE, kFlags, -1, 0);
    std::memset(from, 1, kLarge);
  }
  ::mremap(from, kLarge, kLarge, MREMAP_MAYMOVE | MREMAP_FIXED, to);
  std::swap(from, to);
}

}  // namespace

int main(int count, char** arguments) {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  for (unsigned path = 0; path < 1024; ++path) {
    use_many_stacks(10, path);
  }
  const char* const what = count > 1 ? arguments[1] : "malloc";
  const auto work = std::strcmp(what, "realloc") == 0  ? reallocate
                    : std::strcmp(what, "mremap") == 0 ? move_mapping
                                                       : allocate;
  struct sigaction action = {};
  action.sa_handler = fork_here;
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 1000}, {0, 1000}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  while (g_forked < kChildren && g_is_child == 0) {
    work();
  }
  if (g_is_child != 0) {
    for (int i = 0; i < 1000; ++i) {
      std::free(seen(std::malloc(50)));
    }
    ::_exit(0);
  }
  int bad = 0;
  for (const int child : g_children) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
    }
    bad += status != 0 ? 1 : 0;
  }
  std::printf("%d of %d children ended badly\n", bad, kChildren);
  return bad == 0 ? 0 : 1;
}
