// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "common/io.h"
#include "monitor/procfs/kernel_text.h"
#include "profiler/inject/attach.h"

namespace tidemark::inject {
namespace {

// The last word of a line of /proc/PID/status; empty: there is no such line.
std::string last_word_of(std::string_view status, std::string_view key) {
  std::string_view line;
  std::string_view last;
  while (monitor::take_line(status, line)) {
    if (!line.starts_with(key)) {
      continue;
    }
    line.remove_prefix(key.size());
    for (std::string_view word = monitor::take_word(line); !word.empty();
         word = monitor::take_word(line)) {
      last = word;
    }
  }
  return std::string(last);
}

std::uint64_t filters_of(std::string_view status) {
  const std::string word = last_word_of(status, "Seccomp_filters:");
  std::uint64_t filters = 0;
  std::from_chars(word.data(), word.data() + word.size(), filters);
  return filters;
}

ino_t pid_namespace_of(const std::string& pid) {
  struct stat status {};
  return ::stat(fmt::format("/proc/{}/ns/pid", pid).c_str(), &status) == 0 ? status.st_ino : 0;
}

// Filters of the first process of the same pid namespace; nullopt: it cannot be seen.
std::optional<std::uint64_t> filters_of_container(const std::string& pid) {
  const ino_t space = pid_namespace_of(pid);
  auto folder = monitor::DirectoryStream::open_at(AT_FDCWD, "/proc");
  while (const dirent* const entry = folder && space != 0 ? folder->next() : nullptr) {
    const std::string other = entry->d_name;
    if (other.find_first_not_of("0123456789") != std::string::npos ||
        pid_namespace_of(other) != space) {
      continue;
    }
    const auto status = read_file(fmt::format("/proc/{}/status", other));
    if (status && last_word_of(*status, "NSpid:") == "1") {
      return filters_of(*status);
    }
  }
  return std::nullopt;
}

}  // namespace

bool has_seccomp_filter_of_its_own(pid_t pid) {
  const std::string name = std::to_string(pid);
  const auto status = read_file(fmt::format("/proc/{}/status", name));
  const std::uint64_t filters = status ? filters_of(*status) : 0;
  if (filters == 0) {
    return false;
  }
  const auto ours = read_file("/proc/self/status");
  if (ours && filters <= filters_of(*ours) && pid_namespace_of(name) == pid_namespace_of("self")) {
    return false;
  }
  return filters > filters_of_container(name).value_or(0);
}

}  // namespace tidemark::inject
