// SPDX-License-Identifier: Apache-2.0
// Built with AddressSanitizer.
#include <cstdio>

int main() {
  std::puts("hello");
  return 0;
}
