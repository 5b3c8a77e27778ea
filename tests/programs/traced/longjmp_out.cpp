// SPDX-License-Identifier: Apache-2.0
// Leaves functions that hold blocks by longjmp, from depth to depth.
#include <csetjmp>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

std::jmp_buf g_back;

VICTIM_SITE void jump_from(int depth) {
  seen(std::malloc(176));
  if (depth == 0) {
    std::longjmp(g_back, 1);
  }
  if (depth > 0) {  // always; the compiler is not to know
    jump_from(depth - 1);
  }
}
VICTIM_SITE void* after_jump() { return seen(std::malloc(56)); }

int main() {
  static int jumps = 0;
  static int held = 0;
  while (jumps < 500) {
    if (setjmp(g_back) == 0) {
      const int depth = jumps % 20;
      held += depth + 1;
      ++jumps;
      jump_from(depth);
    }
    after_jump();
  }
  print_held("longjmp_out",
             {{"jump_from", 176U * static_cast<unsigned>(held), static_cast<unsigned>(held)},
              {"after_jump", 56 * 500, 500}});
}
