// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/memory_room.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "common/units.h"
#include "monitor/procfs/cgroup_files.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/limits.h"
#include "monitor/procfs/proc_files.h"

namespace tidemark::heap {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;

// The value of a line "VmPTE:	  1234 kB" of status or meminfo; 0: there is none.
std::uint64_t kib_line_bytes(std::string_view text, std::string_view key) {
  std::string_view line;
  while (monitor::take_line(text, line)) {
    if (line.starts_with(key)) {
      return monitor::kib_field_bytes(line.substr(key.size())).value_or(0);
    }
  }
  return 0;
}

// What of the memory of a group the kernel cannot take back by dropping files.
std::optional<std::uint64_t> used_bytes(const std::string& directory, bool is_v2) {
  const auto usage = read_file(directory + (is_v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  const auto used = usage ? monitor::leading_number(*usage) : std::nullopt;
  const auto stat = read_file(directory + "/memory.stat");
  if (!used || !stat) {
    return used;
  }
  const std::string prefix = is_v2 ? "" : "total_";
  const std::uint64_t files = monitor::keyed_number(*stat, prefix + "inactive_file").value_or(0) +
                              monitor::keyed_number(*stat, prefix + "active_file").value_or(0);
  return *used - std::min(*used, files);
}

}  // namespace

MemoryRoom MemoryRoom::of(const std::string& root, pid_t pid) {
  MemoryRoom room;
  room.root_ = root;
  if (const auto cgroup = monitor::memory_cgroup_of(root, pid)) {
    room.is_v2_ = cgroup->v2;
    for (monitor::CgroupLimit& limit : monitor::cgroup_limits(*cgroup)) {
      room.groups_.push_back({std::move(limit.directory), limit.bytes, std::move(limit.source)});
    }
  }
  return room;
}

std::optional<MemoryRoom::Left> MemoryRoom::left() const {
  std::optional<Left> least;
  const auto consider = [&](std::uint64_t bytes, const std::string& of) {
    if (!least || bytes < least->bytes) {
      least = Left{bytes, of};
    }
  };
  for (const Group& group : groups_) {
    if (const auto used = used_bytes(group.directory, is_v2_)) {
      consider(group.limit_bytes - std::min(group.limit_bytes, *used), group.source);
    }
  }
  if (const auto meminfo = read_file(root_ + "/proc/meminfo")) {
    if (const auto available = monitor::parse_meminfo(*meminfo).available_bytes) {
      consider(*available, "physical memory");
    }
  }
  return least;
}

CopyDemand copy_demand(const std::string& root, pid_t pid) {
  CopyDemand demand;
  if (const auto status = read_file(fmt::format("{}/proc/{}/status", root, pid))) {
    demand.page_table_bytes = kib_line_bytes(*status, "VmPTE:");
    demand.writable_bytes = kib_line_bytes(*status, "RssAnon:");
    demand.reserved_bytes = kib_line_bytes(*status, "VmData:") + kib_line_bytes(*status, "VmStk:");
  }
  return demand;
}

std::string why_no_room(const CopyDemand& demand, const std::optional<MemoryRoom::Left>& left) {
  constexpr std::uint64_t kLeastBytes = 64 * kMiB;
  constexpr std::uint64_t kShare = 4;  // of the room that page tables may take
  const std::uint64_t all = 2 * (demand.page_table_bytes + demand.writable_bytes);
  const std::uint64_t wanted =
      std::min(all, std::max(kLeastBytes, kShare * demand.page_table_bytes));
  if (!left || left->bytes >= wanted) {
    return "";
  }
  return fmt::format("there is no room for a copy of it: {} has {} left, and {} are wanted",
                     left->of, format_bytes(left->bytes), format_bytes(wanted));
}

std::string why_no_promise(const std::string& root, const CopyDemand& demand) {
  const auto mode = read_file(root + "/proc/sys/vm/overcommit_memory");
  const auto meminfo = read_file(root + "/proc/meminfo");
  if (!mode || trim(*mode) != "2" || !meminfo) {
    return "";
  }
  const std::uint64_t limit = kib_line_bytes(*meminfo, "CommitLimit:");
  const std::uint64_t left = limit - std::min(limit, kib_line_bytes(*meminfo, "Committed_AS:"));
  if (left >= 2 * demand.reserved_bytes) {
    return "";
  }
  return fmt::format(
      "there is no room for a copy of it: the kernel reserves all memory (vm.overcommit_memory is "
      "2), has {} left to promise, and a copy takes {}",
      format_bytes(left), format_bytes(demand.reserved_bytes));
}

}  // namespace tidemark::heap
