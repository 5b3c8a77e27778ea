// SPDX-License-Identifier: Apache-2.0
// A timer interrupts allocations, and its handler forks: the child returns from the handler into
// what was interrupted, allocates once more and ends. Prints how many children ended otherwise.
#include <sys/time.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>

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

}  // namespace

int main() {
  struct sigaction action = {};
  action.sa_handler = fork_here;
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 1000}, {0, 1000}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  while (g_forked < kChildren && g_is_child == 0) {
    std::free(seen(std::malloc(100)));
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
