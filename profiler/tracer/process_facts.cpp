// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/process_facts.h"

#include "profiler/tracer/raw_text.h"
#include "profiler/tracer/sys.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

// Field 22 of /proc/self/stat. The name, field 2, is in brackets and may hold anything.
std::uint64_t start_ticks() noexcept {
  char text[1024];
  const int fd = sys::open("/proc/self/stat", O_RDONLY);
  if (fd < 0) {
    return 0;
  }
  const long bytes = sys::read(fd, text, sizeof(text) - 1);
  sys::close(fd);
  if (bytes <= 0) {
    return 0;
  }
  long at = bytes - 1;
  while (at > 0 && text[at] != ')') {
    --at;
  }
  constexpr int kSpaces = 20;  // from the end of the name to field 22
  int spaces = 0;
  for (; at < bytes && spaces < kSpaces; ++at) {
    spaces += text[at] == ' ' ? 1 : 0;
  }
  std::uint64_t ticks = 0;
  for (; at < bytes && text[at] >= '0' && text[at] <= '9'; ++at) {
    ticks = ticks * 10 + static_cast<std::uint64_t>(text[at] - '0');
  }
  return ticks;
}

std::uint64_t pid_namespace() noexcept {
  struct stat status = {};
  const long failed =
      sys::own(SYS_newfstatat, AT_FDCWD, sys::word("/proc/self/ns/pid"), sys::word(&status), 0);
  return failed == 0 ? status.st_ino : 0;
}

}  // namespace

void describe_process(wire::Header& header) noexcept {
  header.pid = static_cast<std::uint32_t>(sys::getpid());
  header.parent_pid = static_cast<std::uint32_t>(sys::getppid());
  header.start_ticks = start_ticks();
  header.pid_namespace = pid_namespace();
  header.created_ns = monotonic_ns();
}

}  // namespace tidemark::tracer
