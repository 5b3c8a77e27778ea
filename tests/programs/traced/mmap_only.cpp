// SPDX-License-Identifier: Apache-2.0
// Mappings of every kind, cut at both ends and in the middle, moved, and mapped over.
#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#include "tests/programs/traced/held.h"

using namespace tidemark::victim;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kPage = 4096;

char* map(std::size_t pages, int flags, void* where = nullptr, int fd = -1) {
  void* const at = ::mmap(where, pages * kPage, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (at == MAP_FAILED) {
    std::_Exit(4);
  }
  return static_cast<char*>(at);
}
constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;

VICTIM_SITE char* map_cut() { return map(100, kPrivate); }
VICTIM_SITE char* map_whole() { return map(10, kPrivate); }
VICTIM_SITE char* map_shared() { return map(7, MAP_SHARED | MAP_ANONYMOUS); }
VICTIM_SITE char* map_over(char* where) { return map(4, kPrivate | MAP_FIXED, where); }
VICTIM_SITE char* map_file(int fd) { return map(3, MAP_PRIVATE, nullptr, fd); }
VICTIM_SITE char* map_shared_file(int fd) { return map(3, MAP_SHARED_VALIDATE, nullptr, fd); }
VICTIM_SITE char* map_odd() { return map(1, kPrivate) + 0; }
VICTIM_SITE char* remap(char* at, std::size_t from, std::size_t to) {
  void* const moved = ::mremap(at, from * kPage, to * kPage, MREMAP_MAYMOVE);
  return moved == MAP_FAILED ? nullptr : static_cast<char*>(moved);
}

int main() {
  char* const cut = map_cut();
  ::munmap(cut, 10 * kPage);               // the front
  ::munmap(cut + 90 * kPage, 10 * kPage);  // the back
  ::munmap(cut + 40 * kPage, 20 * kPage);  // the middle
  map_over(cut + 20 * kPage);              // replaces four pages
  char* const whole = map_whole();
  ::munmap(whole, 10 * kPage);
  map_shared();
  char* const grown = remap(map_whole(), 10, 50);
  char* const shrunk = remap(map_whole(), 10, 5);
  if (grown == nullptr || shrunk == nullptr) {
    return 1;
  }
  // Calls that fail change nothing.
  char* const odd = map_odd();
  errno = 0;
  if (::munmap(odd + 1, kPage) == 0 || errno != EINVAL || ::munmap(odd, 0) == 0) {
    return 2;
  }
  // A private file is not memory of the process; a shared one is listed.
  const int fd = ::memfd_create("mmap_only", MFD_CLOEXEC);
  if (::ftruncate(fd, 8 * kPage) != 0) {
    return 3;
  }
  char* const file = map_file(fd);
  if (remap(file, 3, 6) == nullptr) {
    return 4;
  }
  map_shared_file(fd);
  print_held("mmap_only",
             {{"map_cut", 56 * kPage, 1, "map"},
              {"map_over", 4 * kPage, 1, "map"},
              {"map_whole", 0, 0, "map"},
              {"map_shared", 7 * kPage, 1, "shared"},
              {"remap", 55 * kPage, 2, "map"},
              {"map_odd", kPage, 1, "map"},
              {"map_file", 0, 0, "map"},
              {"map_shared_file", 3 * kPage, 1, "shared"}},
             false);
}
