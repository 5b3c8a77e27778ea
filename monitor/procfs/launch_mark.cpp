// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/launch_mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "common/fd.h"
#include "monitor/procfs/process_handle.h"

namespace tidemark::monitor {

std::string launch_mark() {
  const auto key = process_key_of("/proc", ::getpid());
  return fmt::format("{}.{};", ::getpid(), key ? key->start_ticks : 0);
}

std::string launch_value() {
  // Nothing of ours changes the environment. NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* const outer = std::getenv(kLaunchVariable);
  return (outer == nullptr ? "" : outer) + launch_mark();
}

bool has_launch_mark(int proc_directory, pid_t pid, std::string_view mark) {
  std::array<char, 32> path{};
  *fmt::format_to_n(path.data(), path.size() - 1, "{}/environ", pid).out = '\0';
  const Fd file(::openat(proc_directory, path.data(), O_RDONLY | O_CLOEXEC));
  if (!file || mark.empty()) {
    return false;
  }
  std::array<char, 4096> buffer;
  std::size_t kept = 0;  // the end of the last piece: the mark may begin in it
  while (true) {
    const ssize_t size = ::read(file.get(), buffer.data() + kept, buffer.size() - kept);
    if (size <= 0) {
      return false;
    }
    const std::string_view text(buffer.data(), kept + static_cast<std::size_t>(size));
    if (text.find(mark) != std::string_view::npos) {
      return true;
    }
    kept = std::min(text.size(), mark.size() - 1);
    std::memmove(buffer.data(), text.data() + text.size() - kept, kept);
  }
}

}  // namespace tidemark::monitor
