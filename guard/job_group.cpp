// SPDX-License-Identifier: Apache-2.0
#include "guard/job_group.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/cgroup_files.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::guard {
namespace {

// Its folder in the v2 hierarchy; nullopt for the root of it, which is everybody's.
std::optional<std::string> group_directory(const std::string& root, pid_t pid) {
  const auto text = read_file(fmt::format("{}/proc/{}/cgroup", root, pid));
  const auto mounts = read_file(root + "/proc/self/mountinfo");
  if (!text || !mounts) {
    return std::nullopt;
  }
  for (const monitor::CgroupMembership& membership : monitor::parse_cgroup(*text)) {
    if (!membership.v2 || membership.path == "/") {
      continue;
    }
    for (const monitor::Mount& mount : monitor::parse_mountinfo(*mounts)) {
      const auto below = mount.fs_type == "cgroup2"
                             ? monitor::path_below(membership.path, mount.root)
                             : std::nullopt;
      if (below && !below->empty()) {
        return fmt::format("{}{}/{}", root, mount.mount_point, *below);
      }
    }
  }
  return std::nullopt;
}

bool has_groups_below(const std::string& directory) {
  auto stream = monitor::DirectoryStream::open_at(AT_FDCWD, directory);
  if (!stream) {
    return true;  // who knows
  }
  while (const dirent* entry = stream->next()) {
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") {
      return true;
    }
  }
  return false;
}

}  // namespace

JobGroup open_job_group(const std::string& root, std::span<const ProcessKey> members) {
  const auto directory = members.empty() ? std::nullopt : group_directory(root, members[0].pid);
  const auto text = directory ? read_file(*directory + "/cgroup.procs") : Result<std::string>("");
  if (!directory || !text || has_groups_below(*directory)) {
    return {};
  }
  std::string_view rest = *text;
  while (const auto line = next_line(rest)) {
    const auto pid = parse_number<pid_t>(*line);
    const bool is_member =
        pid && std::any_of(members.begin(), members.end(),
                           [&](const ProcessKey& key) { return key.pid == *pid; });
    if (!is_member) {
      return {};
    }
  }
  auto kill = open_file(*directory + "/cgroup.kill", O_WRONLY);
  auto procs = open_file(*directory + "/cgroup.procs", O_RDONLY);
  return kill && procs ? JobGroup{*std::move(kill), *std::move(procs)} : JobGroup{};
}

}  // namespace tidemark::guard
