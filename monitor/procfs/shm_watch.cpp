// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/shm_watch.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace tidemark::monitor {
namespace {

constexpr std::size_t kLargest = 20;

}  // namespace

std::optional<std::uint64_t> used_bytes_of(const std::string& directory) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0) {
    return std::nullopt;
  }
  return (info.f_blocks - info.f_bfree) * info.f_frsize;
}

ShmWatch::ShmWatch(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock), interval_ns_(options_.least_interval_ns) {}

void ShmWatch::sample(SystemSample& sample, const std::function<bool(pid_t)>& is_of_job) {
  used_bytes_ = options_.used_bytes(options_.directory);
  advance(is_of_job);
  sample.dev_shm_bytes = used_bytes_;
  if (report_) {
    sample.dev_shm_unheld_bytes = unheld_bytes_now();
    sample.dev_shm_segments = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(report_->segments, std::numeric_limits<std::uint32_t>::max()));
  }
}

// While all that is added turns out to be held by nobody, so is what was added since the last pass:
// else a straight rise would come in steps that are as irregular as the passes. When something else
// has come or gone in between, what was counted so is not taken back before the passes had time to
// confirm it, unless less is used: that would be a dip that never was.
std::optional<std::uint64_t> ShmWatch::unheld_bytes_now() {
  constexpr int kPassesToConfirm = 2;
  if (piles_up_ && used_bytes_) {
    const std::int64_t ahead = static_cast<std::int64_t>(*used_bytes_) - *rest_bytes_ -
                               static_cast<std::int64_t>(hidden_bytes_);
    carried_ = {static_cast<std::uint64_t>(std::max<std::int64_t>(ahead, 0)), *used_bytes_, 0};
    return carried_->unheld_bytes;
  }
  if (carried_ && carried_->passes_since <= kPassesToConfirm &&
      used_bytes_ >= carried_->used_bytes && report_->unheld_bytes < carried_->unheld_bytes) {
    return carried_->unheld_bytes;
  }
  carried_.reset();
  return report_->unheld_bytes;
}

// What two passes have confirmed was there when the first of them began.
void ShmWatch::note_rest(std::uint64_t confirmed_bytes) {
  constexpr std::uint64_t kSameShare = 50;
  const std::optional<std::int64_t> rest_before = std::exchange(rest_bytes_, std::nullopt);
  const std::uint64_t confirmed_before = std::exchange(confirmed_bytes_, confirmed_bytes);
  if (used_first_bytes_) {
    rest_bytes_ =
        static_cast<std::int64_t>(*used_first_bytes_) - static_cast<std::int64_t>(confirmed_bytes);
  }
  piles_up_ = rest_before && rest_bytes_ && confirmed_bytes > confirmed_before &&
              std::abs(*rest_bytes_ - *rest_before) <=
                  static_cast<std::int64_t>(confirmed_bytes / kSameShare);
  used_first_bytes_ = used_before_bytes_;
}

// Whether a pass, or what is left of one, may go on.
bool ShmWatch::is_due(std::int64_t now_ns) const {
  if (now_ns < next_slice_ns_) {
    return false;
  }
  if (pass_ || !report_) {
    return true;
  }
  const std::int64_t since_ns = now_ns - pass_began_ns_;
  const bool changed = used_bytes_ != used_before_bytes_;
  return since_ns >= options_.pass_interval_ns ||
         (unconfirmed_ && since_ns >= options_.least_interval_ns) ||
         (changed && since_ns >= interval_ns_);
}

void ShmWatch::advance(const std::function<bool(pid_t)>& is_of_job) {
  const std::int64_t start_ns = clock_.monotonic_ns();
  if (!is_due(start_ns)) {
    return;
  }
  if (!pass_) {
    pass_.emplace(options_.directory, options_.proc_root, options_.own_uid);
    used_before_bytes_ = used_bytes_;
    pass_began_ns_ = start_ns;
  }
  bool done = false;
  std::int64_t cost_ns = 0;
  const std::int64_t spent_before_ns = options_.spent_ns();
  while (!done && cost_ns < options_.slice_ns) {
    done = pass_->step();
    cost_ns = options_.spent_ns() - spent_before_ns;
  }
  const std::int64_t now_ns = clock_.monotonic_ns();
  next_slice_ns_ =
      now_ns + static_cast<std::int64_t>(static_cast<double>(cost_ns) / options_.cost_share);
  if (!done) {
    return;
  }
  if (pass_->readable()) {
    finish_pass(is_of_job);
  } else {  // as if it stood still
    next_slice_ns_ = std::max(next_slice_ns_, now_ns + options_.pass_interval_ns);
  }
  pass_.reset();
  interval_ns_ = unconfirmed_ ? options_.least_interval_ns
                              : std::min(2 * interval_ns_, options_.pass_interval_ns);
}

// A segment may change hands while the pass is under way, from a process not yet searched to one
// that was: only what two passes found without a holder counts. Processes that refuse to be read
// can hold no more than what they have: what is beyond that is held by nobody, whichever it is.
void ShmWatch::finish_pass(const std::function<bool(pid_t)>& is_of_job) {
  ShmReport report;
  std::unordered_set<ino_t> unheld;
  std::uint64_t unheld_bytes = 0;
  std::uint64_t doubtful_bytes = 0;
  const std::uint64_t hidden_bytes = pass_->hidden_bytes();
  unconfirmed_ = false;
  for (const ShmSegment& segment : pass_->segments()) {
    report.named_bytes += segment.allocated_bytes;
    report.unknown_bytes += segment.held ? 0 : segment.allocated_bytes;
    const bool is_of_others =
        is_of_job && segment.owner_alive.value_or(false) && !is_of_job(*segment.owner_pid);
    if (is_of_others || segment.held.value_or(!segment.is_bounded)) {
      continue;
    }
    unheld.insert(segment.inode);
    if (!unheld_before_ || !unheld_before_->contains(segment.inode)) {
      unconfirmed_ = true;
      continue;
    }
    (segment.held ? unheld_bytes : doubtful_bytes) += segment.allocated_bytes;
    if (segment.held || segment.allocated_bytes > hidden_bytes) {
      report.largest_unheld.push_back(segment);
    }
  }
  note_rest(unheld_bytes + doubtful_bytes);
  // Certain ones need no allowance for those that may be theirs.
  hidden_bytes_ = std::min(hidden_bytes, doubtful_bytes);
  if (doubtful_bytes > hidden_bytes) {
    unheld_bytes += doubtful_bytes - hidden_bytes;
    report.unknown_bytes -= doubtful_bytes - hidden_bytes;
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
  if (carried_) {
    ++carried_->passes_since;
  }
}

bool shares_pid_namespace(const std::string& proc_root, pid_t pid) {
  struct stat theirs {};
  struct stat ours {};
  return ::stat(fmt::format("{}/{}/ns/pid", proc_root, pid).c_str(), &theirs) == 0 &&
         ::stat(fmt::format("{}/self/ns/pid", proc_root).c_str(), &ours) == 0 &&
         theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

std::string shm_directory_of(const std::string& proc_root, pid_t pid) {
  constexpr char kDirectory[] = "/dev/shm";
  const std::string through_root = fmt::format("{}/{}/root{}", proc_root, pid, kDirectory);
  struct stat theirs {};
  struct stat ours {};
  if (::stat(through_root.c_str(), &theirs) != 0) {
    return {};
  }
  const bool same = ::stat(kDirectory, &ours) == 0 && ours.st_dev == theirs.st_dev &&
                    ours.st_ino == theirs.st_ino;
  return same ? kDirectory : through_root;
}

}  // namespace tidemark::monitor
