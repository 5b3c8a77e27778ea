// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/tracer_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::monitor {
namespace {

constexpr std::size_t kMostTraces = 4096;

// "4711-123456789.trace": the pid, and when the file was made.
std::optional<std::pair<pid_t, std::uint64_t>> parse_name(std::string_view name) {
  constexpr std::string_view kSuffix = wire::kTraceSuffix;
  const std::size_t dash = name.find('-');
  if (!name.ends_with(kSuffix) || dash == std::string_view::npos) {
    return std::nullopt;
  }
  name.remove_suffix(kSuffix.size());
  const auto pid = parse_number<pid_t>(name.substr(0, dash));
  const auto created_ns = parse_number<std::uint64_t>(name.substr(dash + 1));
  return pid && created_ns ? std::optional(std::pair(*pid, *created_ns)) : std::nullopt;
}

}  // namespace

TracerFiles::TracerFiles(const std::string& shm, uid_t uid)
    : base_(fmt::format("{}/tidemark-{}", shm, uid)) {}

void TracerFiles::read() {
  traces_.clear();
  auto base = DirectoryStream::open_at(AT_FDCWD, base_);
  if (!base) {
    return;
  }
  while (const dirent* entry = base->next()) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
      read_folder(base->fd(), entry->d_name);
    }
  }
}

void TracerFiles::read_folder(int parent, const char* folder) {
  auto files = DirectoryStream::open_at(parent, folder);
  if (!files) {
    return;
  }
  while (const dirent* entry = files->next()) {
    const auto name = parse_name(entry->d_name);
    struct stat info {};
    if (!name || traces_.size() >= kMostTraces ||
        ::fstatat(files->fd(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode)) {
      continue;
    }
    // The tracer touches only what is allocated, and not all is.
    const auto allocated = static_cast<std::uint64_t>(info.st_blocks) * kBlockBytes;
    Trace& trace = traces_[name->first];
    if (name->second >= trace.created_ns) {
      trace = {name->second, std::min(static_cast<std::uint64_t>(info.st_size), allocated)};
    }
  }
}

std::uint64_t TracerFiles::bytes_of(pid_t pid) const {
  const auto it = traces_.find(pid);
  return it == traces_.end() ? 0 : it->second.bytes;
}

}  // namespace tidemark::monitor
