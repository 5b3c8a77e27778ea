// SPDX-License-Identifier: Apache-2.0
// A timer interrupts mmap and munmap, and its handler leaves them by siglongjmp. What is mapped
// after that is to be seen as ever.
#include <sys/mman.h>
#include <sys/time.h>

#include <csetjmp>
#include <csignal>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::size_t kBytes = 8192;
sigjmp_buf g_back;

void jump(int /*signal*/) { siglongjmp(g_back, 1); }

void* map() {
  return ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

}  // namespace

VICTIM_SITE void* map_after_jumps() { return seen(map()); }

int main() {
  struct sigaction action = {};
  action.sa_handler = jump;
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 500}, {0, 500}};
  static volatile int jumps = 0;
  sigsetjmp(g_back, 1);
  if (jumps == 0) {
    ::setitimer(ITIMER_REAL, &often, nullptr);
  }
  while (jumps < 2000) {
    jumps = jumps + 1;
    for (;;) {
      ::munmap(map(), kBytes);
    }
  }
  const itimerval never = {};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  for (int i = 0; i < 100; ++i) {
    map_after_jumps();
  }
  print_held("handler_jumps", {{"map_after_jumps", 100 * kBytes, 100, "map"}});
}
