// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/system_sample.h"

#include <algorithm>
#include <utility>

#include "monitor/procfs/cgroup_files.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_files.h"

namespace tidemark::monitor {
namespace {

KeptFile file_in(const std::string& directory, const char* name) {
  return directory.empty() ? KeptFile() : KeptFile(directory + '/' + name);
}

EffectiveLimit limit_of(const std::string& root, std::optional<pid_t> pid) {
  return pid ? effective_limit(root, *pid) : machine_limit(root);
}

// How far a counter has come; 0 when it was unknown, or began again (another group).
std::uint64_t advance(std::optional<std::uint64_t>& seen, std::uint64_t now) {
  const std::uint64_t before = seen.value_or(now);
  seen = now;
  return now > before ? now - before : 0;
}

}  // namespace

SystemReader::SystemReader(std::string root, std::optional<pid_t> pid)
    : root_(std::move(root)),
      limit_(limit_of(root_, pid)),
      meminfo_(root_ + "/proc/meminfo"),
      pressure_(root_ + "/proc/pressure/memory"),
      vmstat_(root_ + "/proc/vmstat") {
  open_cgroup_files();
  new_oom_kills();
}

void SystemReader::open_cgroup_files() {
  const std::string& directory = limit_.cgroup_directory;
  cgroup_stat_ = file_in(directory, "memory.stat");
  cgroup_charged_ =
      file_in(directory, limit_.cgroup_v2 ? "memory.current" : "memory.usage_in_bytes");
  cgroup_swap_ = limit_.cgroup_v2 ? file_in(directory, "memory.swap.current") : KeptFile();
  cgroup_pressure_ = limit_.cgroup_v2 ? file_in(directory, "memory.pressure") : KeptFile();
  // The kernel counts a kill for the group of the victim; only v2 adds it to the groups above.
  cgroup_events_ = file_in(limit_.process_cgroup_directory,
                           limit_.cgroup_v2 ? "memory.events" : "memory.oom_control");
}

void SystemReader::refresh_limit(std::optional<pid_t> pid) {
  EffectiveLimit now = limit_of(root_, pid);
  if (now.process_cgroup_directory.empty() && !limit_.process_cgroup_directory.empty()) {
    return;
  }
  const bool same_group = now.cgroup_directory == limit_.cgroup_directory &&
                          now.process_cgroup_directory == limit_.process_cgroup_directory;
  limit_ = std::move(now);
  if (!same_group) {
    open_cgroup_files();
    cgroup_oom_kills_ = total_oom_kills(/*whole_machine=*/false);
  }
}

SystemSample SystemReader::sample() {
  SystemSample sample;
  if (const auto text = meminfo_.read(buffer_)) {
    const MeminfoFields meminfo = parse_meminfo(*text);
    sample.total_bytes = meminfo.total_bytes;
    sample.available_bytes = meminfo.available_bytes;
    sample.swap_total_bytes = meminfo.swap_total_bytes;
    sample.swap_free_bytes = meminfo.swap_free_bytes;
    sample.shmem_bytes = meminfo.shmem_bytes;
  }
  if (const auto text = pressure_.read(buffer_)) {
    const PressureFields pressure = parse_pressure(*text);
    sample.psi_some_avg10 = pressure.some_avg10;
    sample.psi_full_avg10 = pressure.full_avg10;
  }
  if (const auto text = cgroup_pressure_.read(buffer_)) {
    const PressureFields pressure = parse_pressure(*text);
    sample.cgroup_psi_some_avg10 = pressure.some_avg10;
    sample.cgroup_psi_full_avg10 = pressure.full_avg10;
  }
  add_cgroup(sample);
  sample.cgroup_limit_bytes = limit_.cgroup_limit_bytes;
  return sample;
}

void SystemReader::add_cgroup(SystemSample& sample) {
  std::array<char, 32> number;
  if (const auto charged = cgroup_charged_.read(number)) {
    sample.cgroup_charged_bytes = leading_number(*charged);
  }
  const auto swap = cgroup_swap_.read(number);
  const auto stat = cgroup_stat_.read(buffer_);
  if (!stat) {
    return;
  }
  sample.cgroup_used_bytes = limit_.cgroup_v2
                                 ? cgroup_v2_used_bytes(*stat, swap.value_or(std::string_view()))
                                 : cgroup_v1_used_bytes(*stat);
  sample.cgroup_cache_bytes = cgroup_page_cache_bytes(*stat, limit_.cgroup_v2);
}

std::optional<std::uint64_t> SystemReader::total_oom_kills(bool whole_machine) {
  const auto text = (whole_machine ? vmstat_ : cgroup_events_).read(buffer_);
  return text ? keyed_number(*text, "oom_kill") : std::nullopt;
}

OomKills SystemReader::new_oom_kills() {
  if (const auto total = total_oom_kills(/*whole_machine=*/false)) {
    return {advance(cgroup_oom_kills_, *total), false};
  }
  if (const auto total = total_oom_kills(/*whole_machine=*/true)) {
    return {advance(machine_oom_kills_, *total), true};
  }
  return {};
}

}  // namespace tidemark::monitor
