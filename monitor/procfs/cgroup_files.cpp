// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/cgroup_files.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

std::vector<std::string> to_strings(const std::vector<std::string_view>& views) {
  std::vector<std::string> strings;
  for (const std::string_view view : views) {
    if (!view.empty()) {
      strings.emplace_back(view);
    }
  }
  return strings;
}

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::vector<std::string_view> path_components(std::string_view path) {
  std::vector<std::string_view> components = split(path, '/');
  std::erase_if(components, [](std::string_view part) { return part.empty() || part == "."; });
  return components;
}

bool is_directory_readable(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

// The folder of `below` and those above it, as far as they exist: a group that has been removed
// while the process was in it ends in " (deleted)".
std::vector<std::string> chain_of_directories(const std::string& mount_directory,
                                              std::string below) {
  std::vector<std::string> directories;
  while (true) {
    std::string directory = mount_directory;
    if (!below.empty()) {
      directory += '/';
      directory += below;
    }
    if (!directories.empty() || is_directory_readable(directory)) {
      directories.push_back(std::move(directory));
    }
    if (below.empty()) {
      return directories;
    }
    const std::size_t slash = below.rfind('/');
    below.resize(slash == std::string::npos ? 0 : slash);
  }
}

bool serves(const Mount& mount, const CgroupMembership& membership) {
  return membership.v2 ? mount.fs_type == "cgroup2"
                       : mount.fs_type == "cgroup" && contains(mount.super_options, "memory");
}

std::optional<CgroupMembership> memory_membership(std::vector<CgroupMembership> memberships) {
  const auto v1 =
      std::find_if(memberships.begin(), memberships.end(),
                   [](const CgroupMembership& m) { return contains(m.controllers, "memory"); });
  const auto found = v1 != memberships.end()
                         ? v1
                         : std::find_if(memberships.begin(), memberships.end(),
                                        [](const CgroupMembership& m) { return m.v2; });
  if (found == memberships.end()) {
    return std::nullopt;
  }
  return std::move(*found);
}

std::optional<std::uint64_t> used_bytes(std::optional<std::uint64_t> anon,
                                        std::optional<std::uint64_t> shmem,
                                        std::optional<std::uint64_t> swap,
                                        std::optional<std::uint64_t> swap_cached) {
  if (!anon || !shmem) {
    return std::nullopt;
  }
  const std::uint64_t swapped = swap.value_or(0);
  return *anon + *shmem + swapped - std::min(swapped, swap_cached.value_or(0));
}

}  // namespace

std::vector<CgroupMembership> parse_cgroup(std::string_view text) {
  std::vector<CgroupMembership> memberships;
  std::string_view line;
  while (take_line(text, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos || !line.substr(second + 1).starts_with('/')) {
      continue;
    }
    CgroupMembership membership;
    membership.controllers = to_strings(split(line.substr(first + 1, second - first - 1), ','));
    membership.path = std::string(line.substr(second + 1));
    membership.v2 = line.substr(0, first) == "0" && membership.controllers.empty();
    memberships.push_back(std::move(membership));
  }
  return memberships;
}

std::vector<Mount> parse_mountinfo(std::string_view text) {
  std::vector<Mount> mounts;
  std::string_view line;
  while (take_line(text, line)) {
    take_word(line);  // mount id
    take_word(line);  // parent id
    take_word(line);  // device
    const std::string_view root = take_word(line);
    const std::string_view mount_point = take_word(line);
    // Any number of optional fields end with a lone dash.
    std::string_view word = take_word(line);
    while (!word.empty() && word != "-") {
      word = take_word(line);
    }
    const std::string_view fs_type = take_word(line);
    take_word(line);  // source
    const std::string_view super_options = take_word(line);
    if (!root.empty() && mount_point.starts_with('/') && !fs_type.empty()) {
      mounts.push_back({undo_octal_escapes(root), undo_octal_escapes(mount_point),
                        std::string(fs_type), to_strings(split(super_options, ','))});
    }
  }
  return mounts;
}

std::optional<std::string> path_below(std::string_view path, std::string_view mount_root) {
  const auto wanted = path_components(path);
  const auto base = path_components(mount_root);
  if (wanted.size() < base.size() || !std::equal(base.begin(), base.end(), wanted.begin())) {
    return std::nullopt;
  }
  const std::vector<std::string_view> below(
      wanted.begin() + static_cast<std::ptrdiff_t>(base.size()), wanted.end());
  if (std::find(below.begin(), below.end(), "..") != below.end()) {
    return std::nullopt;
  }
  return fmt::format("{}", fmt::join(below, "/"));
}

std::optional<MemoryCgroup> memory_cgroup_of(const std::string& root, pid_t pid) {
  const auto cgroup_text = read_file(fmt::format("{}/proc/{}/cgroup", root, pid));
  if (!cgroup_text) {
    return std::nullopt;
  }
  auto membership = memory_membership(parse_cgroup(*cgroup_text));
  if (!membership) {
    return std::nullopt;
  }
  MemoryCgroup cgroup{membership->v2, membership->path, {}};
  // Our own view, not that of `pid`: the files are opened by us, and /proc/PID/cgroup is written
  // for the namespace of its reader.
  const auto mount_text = read_file(root + "/proc/self/mountinfo");
  if (!mount_text) {
    return cgroup;
  }
  for (const Mount& mount : parse_mountinfo(*mount_text)) {
    const auto below =
        serves(mount, *membership) ? path_below(membership->path, mount.root) : std::nullopt;
    if (!below) {
      continue;
    }
    auto directories = chain_of_directories(root + mount.mount_point, *below);
    if (directories.size() >= cgroup.directories.size()) {  // the longest view; later mounts hide
      cgroup.directories = std::move(directories);          // earlier ones
    }
  }
  return cgroup;
}

std::optional<std::uint64_t> cgroup_v2_used_bytes(std::string_view stat,
                                                  std::string_view swap_current) {
  return used_bytes(keyed_number(stat, "anon"), keyed_number(stat, "shmem"),
                    leading_number(swap_current), keyed_number(stat, "swapcached"));
}

std::optional<std::uint64_t> cgroup_v1_used_bytes(std::string_view stat) {
  return used_bytes(keyed_number(stat, "total_rss"), keyed_number(stat, "total_shmem"),
                    keyed_number(stat, "total_swap"), keyed_number(stat, "total_swapcached"));
}

std::optional<std::uint64_t> cgroup_page_cache_bytes(std::string_view stat, bool is_v2) {
  const auto files = keyed_number(stat, is_v2 ? "file" : "total_cache");
  const auto shared = keyed_number(stat, is_v2 ? "shmem" : "total_shmem");
  if (!files || !shared) {
    return std::nullopt;
  }
  return *files - std::min(*files, *shared);
}

}  // namespace tidemark::monitor
