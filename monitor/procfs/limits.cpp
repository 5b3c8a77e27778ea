// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/limits.h"

#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/cgroup_files.h"
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

std::optional<std::uint64_t> limit_in(const std::string& directory, const char* file) {
  const auto text = read_file(fmt::format("{}/{}", directory, file));
  return text ? parse_cgroup_limit(*text) : std::nullopt;
}

void lower_by_group(EffectiveLimit& limit, const std::string& directory,
                    std::optional<std::uint64_t> bytes, const std::string& source) {
  if (bytes && (!limit.cgroup_limit_bytes || *bytes < *limit.cgroup_limit_bytes)) {
    limit.cgroup_limit_bytes = bytes;
    limit.cgroup_directory = directory;
  }
  lower(limit, bytes, source);
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
void apply_hierarchical_limit(EffectiveLimit& limit, const MemoryCgroup& cgroup) {
  const auto stat = read_file(cgroup.directories.front() + "/memory.stat");
  if (!stat) {
    return;
  }
  const auto bytes = keyed_number(*stat, "hierarchical_memory_limit");
  if (bytes && *bytes < kUnlimitedBytes) {
    lower_by_group(limit, cgroup.directories.front(), bytes,
                   fmt::format("cgroup v1 limit above {}", escape_text(cgroup.path)));
  }
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
  for (std::size_t level = 0; level < cgroup.directories.size(); ++level) {
    const std::string& directory = cgroup.directories[level];
    const std::string group = escape_text(group_above(cgroup.path, level));
    if (cgroup.v2) {
      for (const char* file : {"memory.max", "memory.high"}) {
        lower_by_group(limit, directory, limit_in(directory, file),
                       fmt::format("cgroup v2 {} of {}", file, group));
      }
    } else if (level == 0 || counts_what_is_below(directory)) {
      lower_by_group(limit, directory, limit_in(directory, "memory.limit_in_bytes"),
                     fmt::format("cgroup v1 memory.limit_in_bytes of {}", group));
    }
  }
  if (!cgroup.v2) {
    apply_hierarchical_limit(limit, cgroup);
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
