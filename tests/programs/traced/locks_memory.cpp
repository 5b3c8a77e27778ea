// SPDX-License-Identifier: Apache-2.0
// Locks all its memory under the limit that users have, 8 MiB, as real-time programs do. Needs
// nothing of the C++ library, which would take a good part of that.
#include <grp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

int main() {
  void* volatile block = std::malloc(100'000);
  const rlimit usual = {8U << 20U, 8U << 20U};
  if (::setrlimit(RLIMIT_MEMLOCK, &usual) != 0) {
    return 77;
  }
  if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) {
    return 77;  // root may lock without a limit
  }
  if (::mlockall(MCL_CURRENT) != 0) {
    return 1;
  }
  if (::mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    return 2;
  }
  std::free(block);
  block = std::malloc(100'000);
  return block != nullptr ? 0 : 3;
}
