// SPDX-License-Identifier: Apache-2.0
#include "monitor/shm_watch.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace tidemark::monitor {
namespace {

constexpr std::size_t kLargest = 20;

std::optional<std::uint64_t> used_bytes(const std::string& directory) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0) {
    return std::nullopt;
  }
  return (info.f_blocks - info.f_bfree) * info.f_frsize;
}

}  // namespace

ShmWatch::ShmWatch(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}

void ShmWatch::sample(SystemSample& sample) {
  advance();
  sample.dev_shm_bytes = used_bytes(options_.directory);
  if (report_) {
    sample.dev_shm_unheld_bytes = report_->unheld_bytes;
    sample.dev_shm_segments = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(report_->segments, std::numeric_limits<std::uint32_t>::max()));
  }
}

void ShmWatch::advance() {
  const std::int64_t start_ns = clock_.monotonic_ns();
  if (start_ns < next_slice_ns_) {
    return;
  }
  if (!pass_) {
    pass_.emplace(options_.directory, options_.proc_root, options_.own_uid);
  }
  bool done = false;
  std::int64_t now_ns = start_ns;
  while (!done && now_ns - start_ns < options_.slice_ns) {
    done = pass_->step();
    now_ns = clock_.monotonic_ns();
  }
  const auto cost_ns = static_cast<double>(now_ns - start_ns);
  next_slice_ns_ = now_ns + static_cast<std::int64_t>(cost_ns / options_.cost_share);
  if (done) {
    if (pass_->readable()) {
      finish_pass();
    }
    pass_.reset();
    next_slice_ns_ = std::max(next_slice_ns_, now_ns + options_.pass_interval_ns);
  }
}

// A segment may change hands while the pass is under way, from a process not yet looked at to one
// that was: only what two passes found without a holder counts.
void ShmWatch::finish_pass() {
  ShmReport report;
  std::unordered_set<ino_t> unheld;
  std::uint64_t unheld_bytes = 0;
  for (const ShmSegment& segment : pass_->segments()) {
    report.named_bytes += segment.allocated_bytes;
    if (!segment.held) {
      report.unknown_bytes += segment.allocated_bytes;
    } else if (!*segment.held) {
      unheld.insert(segment.inode);
      if (unheld_before_ && unheld_before_->contains(segment.inode)) {
        unheld_bytes += segment.allocated_bytes;
        report.largest_unheld.push_back(segment);
      }
    }
  }
  report.segments = pass_->segments().size() + pass_->unexamined_segments();
  report.named_bytes += pass_->unexamined_bytes();
  report.unknown_bytes += pass_->unexamined_bytes();
  if (unheld_before_ || unheld.empty()) {
    report.unheld_bytes = unheld_bytes;
  }
  std::sort(report.largest_unheld.begin(), report.largest_unheld.end(),
            [](const ShmSegment& a, const ShmSegment& b) {
              return std::pair(b.allocated_bytes, a.inode) < std::pair(a.allocated_bytes, b.inode);
            });
  report.largest_unheld.resize(std::min(report.largest_unheld.size(), kLargest));
  report_ = std::move(report);
  unheld_before_ = std::move(unheld);
}

std::string shm_directory_of(const std::string& proc_root, pid_t pid) {
  const std::string through_root = fmt::format("{}/{}/root/dev/shm", proc_root, pid);
  struct stat theirs {};
  struct stat ours {};
  if (::stat(through_root.c_str(), &theirs) != 0) {
    return {};
  }
  const bool same = ::stat("/dev/shm", &ours) == 0 && ours.st_dev == theirs.st_dev &&
                    ours.st_ino == theirs.st_ino;
  return same ? "/dev/shm" : through_root;
}

}  // namespace tidemark::monitor
