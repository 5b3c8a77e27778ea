// SPDX-License-Identifier: Apache-2.0
// Calls itself something that looks like the rest of /proc/PID/stat, and forks under that name.
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* under_a_false_name() { return seen(std::malloc(144)); }

int main() {
  ::prctl(PR_SET_NAME, ") R 1 (\n) 9 9", 0, 0, 0);
  if (::fork() == 0) {
    for (int i = 0; i < 25; ++i) {
      under_a_false_name();
    }
    print_held("hostile_name", {{"under_a_false_name", 144 * 25, 25}});
    return 0;
  }
  int status = 0;
  ::wait(&status);
  return status;
}
