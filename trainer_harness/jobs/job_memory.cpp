// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/jobs/job_memory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "common/io.h"
#include "common/quiet_thread.h"
#include "common/text.h"

namespace tidemark::harness {
namespace {

using std::chrono::nanoseconds;

constexpr std::array<std::string_view, 3> kStatusFields = {"RssAnon", "RssShmem", "VmSwap"};
constexpr std::array<std::string_view, 3> kRollupFields = {"Pss_Anon", "Pss_Shmem", "SwapPss"};

constexpr nanoseconds kReadEvery = std::chrono::milliseconds(20);
// Reading smaps_rollup holds the memory lock of the process: at most 1/kRestPerRead of the time.
constexpr int kRestPerRead = 20;

// Sum of lines such as "RssAnon:     1234 kB". nullopt unless all of them are there.
std::optional<std::uint64_t> sum_of_fields(std::string_view text,
                                           std::span<const std::string_view> names) {
  std::uint64_t sum_kib = 0;
  std::size_t found = 0;
  while (const auto line = next_line(text)) {
    const std::size_t colon = line->find(':');
    if (colon == std::string_view::npos || !line->ends_with(" kB") ||
        std::find(names.begin(), names.end(), line->substr(0, colon)) == names.end()) {
      continue;
    }
    const std::string_view number = line->substr(colon + 1, line->size() - colon - 4);
    const auto kib = parse_number<std::uint64_t>(trim(number));
    if (!kib) {
      return std::nullopt;
    }
    sum_kib += *kib;
    ++found;
  }
  return found == names.size() ? std::optional(sum_kib * 1024) : std::nullopt;
}

std::optional<std::uint64_t> sum_of_file(const std::string& path,
                                         std::span<const std::string_view> names) {
  const auto text = read_file(path);
  return text ? sum_of_fields(*text, names) : std::nullopt;
}

void add_children(const std::string& proc_root, pid_t pid, std::vector<pid_t>& found) {
  std::error_code error;
  const std::string tasks = fmt::format("{}/{}/task", proc_root, pid);
  for (std::filesystem::directory_iterator task(tasks, error), end; !error && task != end;
       task.increment(error)) {
    const auto text = read_file(task->path().string() + "/children");
    if (!text) {
      continue;
    }
    for (const std::string_view word : split(*text, ' ')) {
      if (const auto child = parse_number<pid_t>(trim(word))) {
        found.push_back(*child);
      }
    }
  }
}

// The root first. A pid that comes twice (a child that was reparented meanwhile) counts once.
std::vector<pid_t> tree_of(const std::string& proc_root, pid_t root) {
  std::vector<pid_t> pids = {root};
  std::set<pid_t> known = {root};
  for (std::size_t i = 0; i < pids.size(); ++i) {
    std::vector<pid_t> children;
    add_children(proc_root, pids[i], children);
    for (const pid_t child : children) {
      if (known.insert(child).second) {
        pids.push_back(child);
      }
    }
  }
  return pids;
}

}  // namespace

std::optional<std::uint64_t> own_footprint_bytes(const std::string& proc_root, pid_t pid) {
  return sum_of_file(fmt::format("{}/{}/status", proc_root, pid), kStatusFields);
}

std::optional<std::uint64_t> tree_footprint_bytes(const std::string& proc_root, pid_t root) {
  const std::vector<pid_t> pids = tree_of(proc_root, root);
  if (pids.size() == 1) {
    return own_footprint_bytes(proc_root, root);
  }
  // Forked relatives share pages: only their proportional sizes can be added.
  std::uint64_t sum = 0;
  for (const pid_t pid : pids) {
    const auto bytes =
        sum_of_file(fmt::format("{}/{}/smaps_rollup", proc_root, pid), kRollupFields);
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
