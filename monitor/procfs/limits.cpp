// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/limits.h"

#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_files.h"

namespace tidemark::monitor {
namespace {

// v1 writes LONG_MAX rounded down to a page for "no limit", whatever the size of its pages.
constexpr std::uint64_t kUnlimitedBytes = 1ULL << 62U;

void lower(EffectiveLimit& limit, std::optional<std::uint64_t> bytes, std::string source) {
  if (bytes && (!limit.bytes || *bytes < *limit.bytes)) {
    limit.bytes = bytes;
    limit.source = std::move(source);
  }
}

// The lower one of a group's limits; nullopt: it has none.
std::optional<CgroupLimit> limit_of_group(const std::string& directory, bool v2,
                                          const std::string& group) {
  std::optional<CgroupLimit> lowest;
  const auto consider = [&](const char* file) {
    const auto text = read_file(fmt::format("{}/{}", directory, file));
    const auto bytes = text ? parse_cgroup_limit(*text) : std::nullopt;
    if (bytes && (!lowest || *bytes < lowest->bytes)) {
      lowest = {directory, *bytes,
                fmt::format("cgroup {} {} of {}", v2 ? "v2" : "v1", file, escape_text(group)),
                /*is_hidden=*/false};
    }
  };
  if (v2) {
    consider("memory.max");
    consider("memory.high");
  } else {
    consider("memory.limit_in_bytes");
  }
  return lowest;
}

// "/a/b" and two levels up: "/". For messages only.
std::string group_above(std::string_view path, std::size_t levels) {
  for (; levels > 0 && path.size() > 1; --levels) {
    path = path.substr(0, path.rfind('/'));
  }
  return path.empty() ? "/" : std::string(path);
}

// Before kernel 5.11 a v1 group could choose not to count what is below it.
bool counts_what_is_below(const std::string& directory) {
  const auto text = read_file(directory + "/memory.use_hierarchy");
  return !text || trim(*text) != "0";
}

// v1 sums up what holds from all groups above, even those that a container cannot see.
std::optional<CgroupLimit> hierarchical_limit(const MemoryCgroup& cgroup) {
  const std::string& directory = cgroup.directories.front();
  const auto stat = read_file(directory + "/memory.stat");
  const auto bytes = stat ? keyed_number(*stat, "hierarchical_memory_limit") : std::nullopt;
  if (!bytes || *bytes >= kUnlimitedBytes) {
    return std::nullopt;
  }
  return CgroupLimit{directory, *bytes,
                     fmt::format("cgroup v1 limit above {}", escape_text(cgroup.path)),
                     /*is_hidden=*/true};
}

void apply_cgroup(EffectiveLimit& limit, const MemoryCgroup& cgroup) {
  limit.cgroup_v2 = cgroup.v2;
  if (cgroup.directories.empty()) {
    limit.note = fmt::format("control group {} is not visible from here: its limit is unknown",
                             escape_text(cgroup.path));
    return;
  }
  limit.process_cgroup_directory = cgroup.directories.front();
  limit.cgroup_directory = cgroup.directories.front();
  for (CgroupLimit& each : cgroup_limits(cgroup)) {
    if (!limit.cgroup_limit_bytes || each.bytes < *limit.cgroup_limit_bytes) {
      limit.cgroup_limit_bytes = each.bytes;
      limit.cgroup_directory = std::move(each.directory);
    }
    lower(limit, each.bytes, std::move(each.source));
  }
}

void apply_cgroup_of(EffectiveLimit& limit, const std::string& root, pid_t pid) {
  if (const auto cgroup = memory_cgroup_of(root, pid)) {
    apply_cgroup(limit, *cgroup);
  }
}

void apply_physical_memory(EffectiveLimit& limit, const std::string& root) {
  if (const auto meminfo = read_file(root + "/proc/meminfo")) {
    lower(limit, parse_meminfo(*meminfo).total_bytes, "physical memory");
  }
}

}  // namespace

std::optional<std::uint64_t> parse_cgroup_limit(std::string_view text) {
  const auto bytes = parse_number<std::uint64_t>(trim(text));
  return bytes && *bytes < kUnlimitedBytes ? bytes : std::nullopt;
}

std::optional<std::uint64_t> parse_soft_limit(std::string_view text, std::string_view name) {
  std::string_view line;
  while (take_line(text, line)) {
    if (line.starts_with(name) && line.substr(name.size()).starts_with(' ')) {
      line.remove_prefix(name.size());
      return parse_number<std::uint64_t>(take_word(line));
    }
  }
  return std::nullopt;
}

std::vector<CgroupLimit> cgroup_limits(const MemoryCgroup& cgroup) {
  std::vector<CgroupLimit> limits;
  const auto add = [&](std::optional<CgroupLimit> limit) {
    if (limit) {
      limits.push_back(*std::move(limit));
    }
  };
  for (std::size_t level = 0; level < cgroup.directories.size(); ++level) {
    const std::string& directory = cgroup.directories[level];
    if (cgroup.v2 || level == 0 || counts_what_is_below(directory)) {
      add(limit_of_group(directory, cgroup.v2, group_above(cgroup.path, level)));
    }
  }
  if (!cgroup.v2 && !cgroup.directories.empty()) {
    add(hierarchical_limit(cgroup));
  }
  return limits;
}

EffectiveLimit effective_limit(const std::string& root, pid_t pid) {
  EffectiveLimit limit;
  apply_cgroup_of(limit, root, pid);
  if (const auto limits = read_file(fmt::format("{}/proc/{}/limits", root, pid))) {
    lower(limit, parse_soft_limit(*limits, "Max address space"), "RLIMIT_AS");
    lower(limit, parse_soft_limit(*limits, "Max data size"), "RLIMIT_DATA");
  }
  apply_physical_memory(limit, root);
  return limit;
}

EffectiveLimit machine_limit(const std::string& root) {
  constexpr pid_t kInit = 1;
  EffectiveLimit limit;
  apply_cgroup_of(limit, root, kInit);
  apply_physical_memory(limit, root);
  return limit;
}

}  // namespace tidemark::monitor
