// SPDX-License-Identifier: Apache-2.0
// A tree of processes by fork; each holds blocks of its own and frees some that it inherited.
#include <sys/wait.h>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

constexpr int kBlocks = 100;
void* g_inherited[kBlocks];

VICTIM_SITE void* before_fork() { return seen(std::malloc(128)); }
VICTIM_SITE void* in_child() { return seen(std::malloc(256)); }

void live_in_child(int depth) {
  for (int i = 0; i < kBlocks; ++i) {
    in_child();
  }
  for (int i = 0; i < kBlocks / 2; ++i) {
    std::free(g_inherited[i]);
    g_inherited[i] = nullptr;
  }
  for (int i = 0; i < 2 && depth < 2; ++i) {
    if (::fork() == 0) {
      for (void*& block : g_inherited) {
        std::free(block);
        block = nullptr;
      }
      live_in_child(depth + 1);
      std::_Exit(0);
    }
  }
  while (::wait(nullptr) > 0) {
  }
  print_held("fork_tree", {{"in_child", 256 * kBlocks, kBlocks}, {"before_fork", 0, 0}});
}

int main() {
  for (void*& block : g_inherited) {
    block = before_fork();
  }
  for (int i = 0; i < 3; ++i) {
    if (::fork() == 0) {
      live_in_child(1);
      std::_Exit(0);
    }
  }
  while (::wait(nullptr) > 0) {
  }
  print_held("fork_tree", {{"before_fork", 128 * kBlocks, kBlocks}, {"in_child", 0, 0}});
}
