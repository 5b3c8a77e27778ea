// SPDX-License-Identifier: Apache-2.0
#include "guard/headroom.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/cgroup_files.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/limits.h"
#include "monitor/procfs/proc_files.h"

namespace tidemark::guard {
namespace {

constexpr std::uint64_t kMostKeptFree = 2ULL << 30U;
constexpr std::uint64_t kShareKeptFree = 20;  // one part in so many

Fd open_quietly(const std::string& path) {
  auto opened = open_file(path, O_RDONLY);
  return opened ? *std::move(opened) : Fd();
}

// common/io.h makes a text of every error; here a process that ends is an everyday thing.
std::string_view read_text(const Fd& fd, std::span<char> buffer) {
  if (!fd) {
    return {};
  }
  ssize_t size = 0;
  do {
    size = ::pread(fd.get(), buffer.data(), buffer.size(), 0);
  } while (size < 0 && errno == EINTR);
  return {buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

std::uint64_t page_bytes() {
  static const auto kBytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return kBytes;
}

// The n-th number of /proc/PID/statm: 0 size, 1 resident, 2 shared, 5 data and stack.
std::optional<std::uint64_t> statm_bytes(std::string_view text, std::size_t n) {
  std::string_view word;
  for (std::size_t i = 0; i <= n; ++i) {
    word = monitor::take_word(text);
  }
  const auto pages = parse_number<std::uint64_t>(trim(word));
  return pages ? std::optional(*pages * page_bytes()) : std::nullopt;
}

std::optional<std::uint64_t> private_bytes(const Fd& statm) {
  std::array<char, 128> buffer;
  const std::string_view text = read_text(statm, buffer);
  const auto resident = statm_bytes(text, 1);
  const auto shared = statm_bytes(text, 2);
  return resident && shared ? std::optional(*resident - std::min(*resident, *shared))
                            : std::nullopt;
}

}  // namespace

std::uint64_t KeepFree::of(std::uint64_t limit_bytes) const {
  return bytes ? *bytes : std::min(limit_bytes / kShareKeptFree, kMostKeptFree);
}

TreeUse::TreeUse(const std::string& root, std::uint64_t footprint_bytes,
                 std::span<const ProcessSample> members)
    : footprint_bytes_(footprint_bytes) {
  for (const ProcessSample& sample : members) {
    rest_bytes_ += sample.rss_shmem_bytes.value_or(0) + sample.swap_bytes.value_or(0);
    Fd statm = members_.size() < kMostMembers
                   ? open_quietly(fmt::format("{}/proc/{}/statm", root, sample.key.pid))
                   : Fd();
    // Before Linux 4.5 a sample does not have it.
    const std::uint64_t anon =
        sample.rss_anon_bytes.value_or(private_bytes(statm).value_or(sample.rss_bytes.value_or(0)));
    if (statm) {
      members_.push_back({std::move(statm), anon});
    } else {
      rest_bytes_ += anon;
    }
  }
}

std::uint64_t TreeUse::read() const {
  std::int64_t gained = 0;
  std::uint64_t largest = 0;
  std::uint64_t sum = rest_bytes_;
  for (const Member& member : members_) {
    // Who has ended since holds nothing any more.
    const std::uint64_t now = private_bytes(member.statm).value_or(0);
    gained += static_cast<std::int64_t>(now) - static_cast<std::int64_t>(member.base_bytes);
    largest = std::max(largest, now);
    sum += now;
  }
  const auto now = std::max<std::int64_t>(0, static_cast<std::int64_t>(footprint_bytes_) + gained);
  return std::clamp(static_cast<std::uint64_t>(now), largest, sum);
}

HeadroomReader::HeadroomReader(const Options& options) : keep_free_(options.keep_free) {
  for (const pid_t pid : options.groups_of) {
    add_groups(options.root, pid);
  }
  add_machine(options.root);
  for (const pid_t pid : options.resources_of) {
    add_resources(options.root, pid);
  }
  if (options.given_bytes) {
    add({LimitKind::kGiven, *options.given_bytes, "--limit"}, {});
  }
}

void HeadroomReader::add(WatchedLimit limit, Files files) {
  limits_.push_back(std::move(limit));
  files_.push_back(std::move(files));
}

void HeadroomReader::add_groups(const std::string& root, pid_t pid) {
  const auto is_known = [this](const std::string& directory) {
    return std::find(groups_.begin(), groups_.end(), directory) != groups_.end();
  };
  const auto group = monitor::memory_cgroup_of(root, pid);
  if (!group || group->directories.empty() || is_known(group->directories.front())) {
    return;  // ranks mostly have the same group
  }
  for (const monitor::CgroupLimit& limit : monitor::cgroup_limits(*group)) {
    // What the groups that cannot be seen use is not told: they count if no other limit is lower.
    const bool is_covered =
        limit.is_hidden && std::any_of(limits_.begin(), limits_.end(), [&](const auto& other) {
          return other.bytes <= limit.bytes;
        });
    if (is_covered || is_known(limit.directory)) {
      continue;
    }
    const std::string& directory = limit.directory;
    Files files;
    files.v2 = group->v2;
    files.usage =
        open_quietly(directory + (group->v2 ? "/memory.current" : "/memory.usage_in_bytes"));
    files.stat = open_quietly(directory + "/memory.stat");
    files.swap = group->v2 ? open_quietly(directory + "/memory.swap.current") : Fd();
    add({LimitKind::kControlGroup, limit.bytes, limit.source}, std::move(files));
    if (group->v2) {
      pressures_.push_back(open_quietly(directory + "/memory.pressure"));
    }
  }
  groups_.insert(groups_.end(), group->directories.begin(), group->directories.end());
}

void HeadroomReader::add_machine(const std::string& root) {
  Files files;
  files.usage = open_quietly(root + "/proc/meminfo");
  if (const auto total = monitor::parse_meminfo(read_text(files.usage, buffer_)).total_bytes) {
    add({LimitKind::kMachine, *total, "physical memory"}, std::move(files));
  }
  pressures_.push_back(open_quietly(root + "/proc/pressure/memory"));
}

void HeadroomReader::add_resources(const std::string& root, pid_t pid) {
  const auto text = read_file(fmt::format("{}/proc/{}/limits", root, pid));
  if (!text) {
    return;
  }
  const auto consider = [&](std::string_view line, LimitKind kind, const char* name) {
    if (const auto bytes = monitor::parse_soft_limit(*text, line)) {
      Files files;
      files.usage = open_quietly(fmt::format("{}/proc/{}/statm", root, pid));
      add({kind, *bytes, fmt::format("{} of pid {}", name, pid)}, std::move(files));
    }
  };
  consider("Max address space", LimitKind::kAddressSpace, "RLIMIT_AS");
  consider("Max data size", LimitKind::kDataSize, "RLIMIT_DATA");
}

// Page cache does not count: the kernel gives it up before it kills. It cannot give up most of its
// own memory (page tables, stacks of a thousand processes) but does not say how much; so that
// counts as soon as there is hardly any page cache left to be given up instead.
std::optional<std::int64_t> HeadroomReader::free_in_group(const WatchedLimit& limit,
                                                          const Files& files,
                                                          std::uint64_t keep_free_bytes) {
  std::array<char, 32> number;
  const auto charged = monitor::leading_number(read_text(files.usage, number));
  std::array<char, 32> swap_number;
  const std::string_view swap = read_text(files.swap, swap_number);
  const auto limit_bytes = static_cast<std::int64_t>(limit.bytes);
  const std::string_view stat = read_text(files.stat, buffer_);
  const auto used =
      files.v2 ? monitor::cgroup_v2_used_bytes(stat, swap) : monitor::cgroup_v1_used_bytes(stat);
  if (!used) {
    return charged ? std::optional(limit_bytes - static_cast<std::int64_t>(*charged))
                   : std::nullopt;
  }
  std::uint64_t counts = *used;
  const std::uint64_t cache =
      monitor::keyed_number(stat, files.v2 ? "inactive_file" : "total_inactive_file").value_or(0) +
      monitor::keyed_number(stat, files.v2 ? "active_file" : "total_active_file").value_or(0);
  if (charged && cache < keep_free_bytes) {
    const std::uint64_t given_up =
        cache + monitor::keyed_number(stat, "slab_reclaimable").value_or(0);
    counts = std::max(counts, *charged - std::min(*charged, given_up));
  }
  return limit_bytes - static_cast<std::int64_t>(counts);
}

std::optional<std::int64_t> HeadroomReader::free_on_machine(const Files& files) {
  const monitor::MeminfoFields meminfo = monitor::parse_meminfo(read_text(files.usage, buffer_));
  if (!meminfo.available_bytes) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*meminfo.available_bytes + meminfo.swap_free_bytes.value_or(0));
}

std::optional<std::int64_t> HeadroomReader::free_bytes(std::size_t limit, const TreeUse* tree) {
  const WatchedLimit& watched = limits_[limit];
  const Files& files = files_[limit];
  const auto below = [&](std::optional<std::uint64_t> used) {
    return used ? std::optional(static_cast<std::int64_t>(watched.bytes) -
                                static_cast<std::int64_t>(*used))
                : std::nullopt;
  };
  std::array<char, 128> statm;
  switch (watched.kind) {
    case LimitKind::kControlGroup:
      return free_in_group(watched, files, keep_free_.of(watched.bytes));
    case LimitKind::kMachine:
      return free_on_machine(files);
    case LimitKind::kAddressSpace:
      return below(statm_bytes(read_text(files.usage, statm), 0));
    case LimitKind::kDataSize:
      return below(statm_bytes(read_text(files.usage, statm), 5));
    case LimitKind::kGiven:
      return tree != nullptr ? below(tree->read()) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<Headroom> HeadroomReader::read(const TreeUse* tree) {
  std::optional<Headroom> nearest;
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    const auto free = free_bytes(i, tree);
    if (!free) {
      continue;  // of a process that has ended, for example
    }
    const Headroom headroom{*free, limits_[i].bytes, keep_free_.of(limits_[i].bytes), i};
    if (!nearest || headroom.to_spare_bytes() < nearest->to_spare_bytes()) {
      nearest = headroom;
    }
  }
  return nearest;
}

std::optional<double> HeadroomReader::pressure() {
  std::optional<double> highest;
  for (const Fd& file : pressures_) {
    const auto full = monitor::parse_pressure(read_text(file, buffer_)).full_avg10;
    if (full && (!highest || *full > *highest)) {
      highest = full;
    }
  }
  return highest;
}

}  // namespace tidemark::guard
