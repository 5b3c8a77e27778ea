// SPDX-License-Identifier: Apache-2.0
// Ends, or does not, and leaves something behind: for `tidemark check`. Options, each with a
// number: --ms (how long it runs itself), --stray-mb and --stray-s (a child that goes on), --shm-mb
// (a segment /dev/shm/torch_PID_4711_0 that nobody unlinks),
// --stubborn N (it and N children run for ever, deaf to SIGTERM).
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/programs/memory_victim.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

namespace {

double number_after(int argc, char** argv, std::string_view name, double otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == name) {
      return std::strtod(argv[i + 1], nullptr);
    }
  }
  return otherwise;
}

void leave_stray(double megabytes, double seconds) {
  if (::fork() != 0) {
    return;
  }
  for (const int fd : {0, 1, 2}) {  // nobody waits for its output
    ::close(fd);
  }
  const Block block(megabytes);
  ::usleep(static_cast<useconds_t>(seconds * 1e6));
  std::_Exit(0);
}

void leave_segment(double megabytes) {
  // Named as those of torch, which bear the pid of their maker.
  const std::string name = "/torch_" + std::to_string(::getpid()) + "_4711_0";
  const int fd = ::shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  const auto size = static_cast<std::size_t>(megabytes * kMegabyte);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(size)) != 0) {
    std::perror(name.c_str());
    std::_Exit(1);
  }
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  std::memset(memory, 0x5A, size);
  ::munmap(memory, size);
  ::close(fd);
  std::printf("segment %s\n", name.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const double stubborn = number_after(argc, argv, "--stubborn", -1);
  if (stubborn >= 0) {
    ::signal(SIGTERM, SIG_IGN);
    for (int i = 0; i < static_cast<int>(stubborn); ++i) {
      if (::fork() == 0) {
        break;
      }
    }
    std::printf("pid %d\n", ::getpid());
    std::fflush(stdout);
    while (true) {
      ::pause();
    }
  }
  const Block own(16);
  ::usleep(static_cast<useconds_t>(number_after(argc, argv, "--ms", 600) * 1e3));
  if (const double mb = number_after(argc, argv, "--stray-mb", 0); mb > 0) {
    leave_stray(mb, number_after(argc, argv, "--stray-s", 20));
    ::usleep(100'000);
  }
  if (const double mb = number_after(argc, argv, "--shm-mb", 0); mb > 0) {
    leave_segment(mb);
  }
}
