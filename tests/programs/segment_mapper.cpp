// SPDX-License-Identifier: Apache-2.0
// usage: segment_mapper FD
// Maps all of the shared memory behind an inherited descriptor, touches it and waits to be killed.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

int main(int argc, char** argv) {
  const int fd = argc == 2 ? std::atoi(argv[1]) : -1;
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    return 1;
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) {
    return 1;
  }
  volatile char sink = 0;
  for (std::size_t i = 0; i < size; i += 4096) {
    sink = static_cast<const char*>(mapped)[i];
  }
  static_cast<void>(sink);
  while (true) {
    ::pause();
  }
}
