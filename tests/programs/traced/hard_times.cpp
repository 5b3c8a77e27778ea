// SPDX-License-Identifier: Apache-2.0
// Takes something away that the tracer would like to have, then allocates more than its file holds.
// With "space FOLDER BYTES" it then uses shared memory of its own in that folder.
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

VICTIM_SITE void* in_hard_times() { return seen(std::malloc(24)); }

bool take_away(std::string_view what, const char* argument) {
  if (what == "descriptors") {
    const rlimit none = {0, 0};
    for (int fd = 3; fd < 1024; ++fd) {
      ::close(fd);
    }
    ::close(0);
    ::close(2);
    return ::setrlimit(RLIMIT_NOFILE, &none) == 0;
  }
  if (what == "free_descriptors") {
    while (::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
    }
    return errno == EMFILE;
  }
  if (what == "root_folder") {
    return ::chroot(argument) == 0 && ::chdir("/") == 0;
  }
  if (what == "rights") {
    return ::setgroups(0, nullptr) == 0 && ::setgid(65534) == 0 && ::setuid(65534) == 0;
  }
  if (what == "address_space") {
    const rlimit little = {std::strtoul(argument, nullptr, 10), RLIM_INFINITY};
    return ::setrlimit(RLIMIT_AS, &little) == 0;
  }
  if (what == "locked_memory") {
    const rlimit little = {1U << 20U, 1U << 20U};
    return ::setrlimit(RLIMIT_MEMLOCK, &little) == 0 && ::mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
  }
  return what == "nothing" || what == "space";
}

// As torch does with its batches: the pages are found when they are touched, or the program dies.
bool use_space(const std::string& folder, std::size_t bytes) {
  const int fd = ::open((folder + "/batch").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    return false;
  }
  void* const batch = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (batch == MAP_FAILED) {
    return false;
  }
  std::memset(batch, 0x5a, bytes);
  return true;
}

int main(int argc, char** argv) {
  if (!take_away(argc > 1 ? argv[1] : "nothing", argc > 2 ? argv[2] : "")) {
    return 77;
  }
  std::uint64_t blocks = 0;
  for (int i = 0; i < 400000; ++i) {
    blocks += in_hard_times() != nullptr ? 1U : 0U;
  }
  if (argc > 3 && !use_space(argv[2], std::strtoul(argv[3], nullptr, 10))) {
    return 76;
  }
  print_held("hard_times", {{"in_hard_times", 24 * blocks, blocks}});
}
