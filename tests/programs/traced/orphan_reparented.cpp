// SPDX-License-Identifier: Apache-2.0
// A grandchild goes on after its parent is gone.
#include <sys/wait.h>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* as_orphan() { return seen(std::malloc(512)); }

int main() {
  int done[2];
  if (::pipe(done) != 0) {
    return 1;
  }
  if (::fork() == 0) {
    const pid_t parent = ::getpid();
    if (::fork() == 0) {
      ::close(done[0]);
      while (::getppid() == parent) {
        ::usleep(200);
      }
      for (int i = 0; i < 50; ++i) {
        as_orphan();
      }
      print_held("orphan_reparented", {{"as_orphan", 512 * 50, 50}});
      std::exit(0);
    }
    std::_Exit(0);
  }
  ::wait(nullptr);
  ::close(done[1]);
  char byte = 0;
  return static_cast<int>(::read(done[0], &byte, 1));  // until the orphan is gone: 0
}
