// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/job_memory.h"

#include <fcntl.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/io.h"
#include "common/quiet_thread.h"
#include "monitor/procfs/proc_files.h"
#include "monitor/procfs/proc_smaps.h"
#include "monitor/procfs/process_source.h"

namespace tidemark::harness {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kReadEvery = std::chrono::milliseconds(20);
// Reading smaps_rollup holds the memory lock of the process: at most 1/kRestPerRead of the time.
constexpr int kRestPerRead = 20;

std::vector<pid_t> children_of(const std::string& proc_root, pid_t pid) {
  const auto directory = open_file(fmt::format("{}/{}", proc_root, pid), O_PATH | O_DIRECTORY);
  auto children = directory ? monitor::children_of_threads(directory->get()) : directory.error();
  return children ? *std::move(children) : std::vector<pid_t>();
}

// Pages shared with others count in parts.
std::optional<std::uint64_t> proportional_footprint_bytes(const std::string& proc_root, pid_t pid) {
  const auto text = read_file(fmt::format("{}/{}/smaps_rollup", proc_root, pid));
  const auto pss = text ? monitor::parse_smaps_rollup(*text) : text.error();
  return pss && !pss->split_estimated ? std::optional(pss->footprint_bytes()) : std::nullopt;
}

// The root first. A pid that comes twice (a child that was reparented meanwhile) counts once.
std::vector<pid_t> tree_of(const std::string& proc_root, pid_t root) {
  std::vector<pid_t> pids = {root};
  std::set<pid_t> known = {root};
  for (std::size_t i = 0; i < pids.size(); ++i) {
    for (const pid_t child : children_of(proc_root, pids[i])) {
      if (known.insert(child).second) {
        pids.push_back(child);
      }
    }
  }
  return pids;
}

}  // namespace

std::optional<std::uint64_t> own_footprint_bytes(const std::string& proc_root, pid_t pid) {
  const auto text = read_file(fmt::format("{}/{}/status", proc_root, pid));
  const auto status = text ? monitor::parse_status(*text) : text.error();
  if (!status || !status->rss_anon_bytes || !status->rss_shmem_bytes || !status->swap_bytes) {
    return std::nullopt;
  }
  return *status->rss_anon_bytes + *status->rss_shmem_bytes + *status->swap_bytes;
}

std::optional<std::uint64_t> tree_footprint_bytes(const std::string& proc_root, pid_t root) {
  const std::vector<pid_t> pids = tree_of(proc_root, root);
  if (pids.size() == 1) {
    return own_footprint_bytes(proc_root, root);
  }
  // Forked relatives share pages: only their proportional sizes can be added.
  std::uint64_t sum = 0;
  for (const pid_t pid : pids) {
    const auto bytes = proportional_footprint_bytes(proc_root, pid);
    if (!bytes && pid == root) {
      return std::nullopt;
    }
    sum += bytes.value_or(0);
  }
  return sum;
}

PeakMeter::PeakMeter(ReadBytes read_bytes)
    : read_bytes_(std::move(read_bytes)), thread_(start_quiet_thread([this] { measure(); })) {}

PeakMeter::~PeakMeter() { finish(); }

std::optional<std::uint64_t> PeakMeter::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

std::optional<std::uint64_t> PeakMeter::finish() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    stopped_.notify_all();
    thread_.join();
  }
  return peak();
}

nanoseconds PeakMeter::read_once() {
  const auto begin = std::chrono::steady_clock::now();
  const auto value = read_bytes_();
  if (value) {
    const std::lock_guard lock(mutex_);
    peak_ = std::max(peak_.value_or(0), *value);
  }
  return std::chrono::steady_clock::now() - begin;
}

void PeakMeter::measure() {
  bool stop = false;
  while (!stop) {
    const nanoseconds rest = std::max(kReadEvery, kRestPerRead * read_once());
    std::unique_lock lock(mutex_);
    stop = stopped_.wait_for(lock, rest, [this] { return stop_; });
  }
}

}  // namespace tidemark::harness
