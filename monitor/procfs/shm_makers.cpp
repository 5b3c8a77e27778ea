// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/shm_makers.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_files.h"

namespace tidemark::monitor {

std::int64_t boot_wall_s(const std::string& proc_root) {
  const auto stat = read_file(proc_root + "/stat");
  return stat ? static_cast<std::int64_t>(keyed_number(*stat, "btime").value_or(0)) : 0;
}

std::int64_t start_wall_s(std::int64_t boot_wall_s, std::uint64_t start_ticks) {
  static const auto kTicksPerSecond = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return boot_wall_s + static_cast<std::int64_t>(start_ticks / kTicksPerSecond);
}

ShmMakers::ShmMakers(std::string proc_root)
    : proc_root_(std::move(proc_root)), boot_wall_s_(boot_wall_s(proc_root_)) {}

void ShmMakers::add(const ProcessKey& key) {
  Maker maker{key.pid, start_wall_s(boot_wall_s_, key.start_ticks), State::kRunning};
  if (const auto text = read_file(fmt::format("{}/{}/status", proc_root_, key.pid))) {
    const auto status = parse_status(*text);
    maker.pid_in_names = status ? status->innermost_pid.value_or(key.pid) : key.pid;
  }
  add_name(maker);
  makers_.emplace(key, maker);
}

void ShmMakers::add_name(const Maker& maker) {
  const auto [named, is_new] = start_by_name_.emplace(maker.pid_in_names, maker.start_wall_s);
  named->second = std::min(named->second, maker.start_wall_s);
}

void ShmMakers::set_running(std::span<const ProcessKey> job) {
  running_.clear();
  for (const ProcessKey& key : job) {
    running_.insert(key.pid);
    if (!makers_.contains(key)) {
      add(key);
    }
  }
  const std::unordered_set<ProcessKey> now(job.begin(), job.end());
  for (auto& [key, maker] : makers_) {
    if (maker.state == State::kRunning && !now.contains(key)) {
      maker.state = State::kExited;
    }
  }
}

bool ShmMakers::may_have_made(pid_t pid_in_name, std::int64_t created_wall_s) const {
  const auto found = start_by_name_.find(pid_in_name);
  return found != start_by_name_.end() && found->second <= created_wall_s + kClockSlackS;
}

void ShmMakers::begin_pass() {
  for (auto& [key, maker] : makers_) {
    if (maker.state == State::kExited) {
      maker.state = State::kExitedBeforePass;
    }
  }
}

void ShmMakers::end_pass() {
  std::erase_if(makers_,
                [](const auto& entry) { return entry.second.state == State::kExitedBeforePass; });
  start_by_name_.clear();
  for (const auto& [key, maker] : makers_) {
    add_name(maker);
  }
}

}  // namespace tidemark::monitor
