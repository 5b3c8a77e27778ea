// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/shm_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace tidemark::monitor {
namespace {

void keep_largest(std::vector<ShmSegment>& segments) {
  constexpr std::size_t kLargest = 20;
  std::sort(segments.begin(), segments.end(), [](const ShmSegment& a, const ShmSegment& b) {
    return std::pair(b.allocated_bytes, a.inode) < std::pair(a.allocated_bytes, b.inode);
  });
  segments.resize(std::min(segments.size(), kLargest));
}

}  // namespace

std::optional<std::uint64_t> used_bytes_of(const std::string& directory) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0) {
    return std::nullopt;
  }
  return (info.f_blocks - info.f_bfree) * info.f_frsize;
}

// What two passes have confirmed was there when the first of them began.
void UnheldEstimate::add_pass(std::uint64_t own_bytes, std::uint64_t confirmed_bytes,
                              std::uint64_t hidden_bytes) {
  constexpr std::uint64_t kSameShare = 50;
  const bool has_listing = wants_listing();  // which is younger
  const std::optional<std::int64_t> rest_before = std::exchange(rest_bytes_, std::nullopt);
  const std::uint64_t confirmed_before = std::exchange(confirmed_bytes_, confirmed_bytes);
  if (own_before_bytes_) {
    rest_bytes_ =
        static_cast<std::int64_t>(*own_before_bytes_) - static_cast<std::int64_t>(confirmed_bytes);
  }
  piles_up_ = rest_before && rest_bytes_ && confirmed_bytes > confirmed_before &&
              std::abs(*rest_bytes_ - *rest_before) <=
                  static_cast<std::int64_t>(confirmed_bytes / kSameShare);
  own_before_bytes_ = own_bytes;
  if (!has_listing) {
    own_bytes_ = own_bytes;
  }
  hidden_bytes_ = hidden_bytes;
  if (carried_) {
    ++carried_->passes_since;
  }
}

// When something else has come or gone in between, what was counted ahead is not taken back before
// the passes had time to confirm it, unless the job has less: that would be a dip that never was.
std::optional<std::uint64_t> UnheldEstimate::unheld_bytes(
    std::optional<std::uint64_t> found_bytes) {
  constexpr int kPassesToConfirm = 2;
  if (piles_up_) {
    const std::int64_t ahead = static_cast<std::int64_t>(own_bytes_) - *rest_bytes_ -
                               static_cast<std::int64_t>(hidden_bytes_);
    carried_ = {static_cast<std::uint64_t>(std::max<std::int64_t>(ahead, 0)), own_bytes_, 0};
    return carried_->unheld_bytes;
  }
  if (carried_ && carried_->passes_since <= kPassesToConfirm && own_bytes_ >= carried_->own_bytes &&
      found_bytes < carried_->unheld_bytes) {
    return carried_->unheld_bytes;
  }
  carried_.reset();
  return found_bytes;
}

void ShmListing::begin(const std::vector<ShmSegment>& segments,
                       const std::unordered_set<ino_t>& of_job) {
  own_.clear();
  others_.clear();
  in_folders_bytes_ = 0;
  for (const ShmSegment& segment : segments) {
    if (!of_job.contains(segment.inode)) {
      others_.insert(segment.inode);
    } else if (segment.path.find('/') != std::string::npos) {
      in_folders_bytes_ += segment.allocated_bytes;
    } else {
      own_.emplace(segment.inode, segment.allocated_bytes);
    }
  }
}

std::uint64_t ShmListing::update(const std::string& directory, const ShmMakers& job,
                                 bool counts_all) {
  std::uint64_t bytes = in_folders_bytes_;
  auto stream = DirectoryStream::open_at(AT_FDCWD, directory + "/.");
  while (const dirent* entry = stream ? stream->next() : nullptr) {
    const auto known = own_.find(entry->d_ino);
    if (known != own_.end()) {
      bytes += known->second;
    } else if (!others_.contains(entry->d_ino)) {
      const auto file = read_shm_file(stream->fd(), entry->d_name);
      const std::optional<pid_t> maker = read_shm_name(entry->d_name).pid;
      const bool is_own =
          file && (counts_all || (maker && job.may_have_made(*maker, file->created_wall_s)));
      if (is_own) {
        bytes += file->allocated_bytes;  // it may still be filled: read again the next time
      } else {
        others_.insert(entry->d_ino);
      }
    }
  }
  return bytes;
}

ShmWatch::ShmWatch(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      makers_(options_.proc_root),
      search_(options_.proc_root),
      last_slice_ns_(clock.monotonic_ns()),
      interval_ns_(options_.least_interval_ns) {}

void ShmWatch::sample(SystemSample& sample, std::span<const ProcessKey> job) {
  used_bytes_ = options_.used_bytes(options_.directory);
  if (!options_.counts_all) {
    makers_.set_running(job);
  }
  advance();
  list_own();
  sample.dev_shm_bytes = used_bytes_;
  if (report_) {
    sample.dev_shm_unheld_bytes = estimate_.unheld_bytes(report_->unheld_bytes);
    sample.dev_shm_segments = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(report_->segments, std::numeric_limits<std::uint32_t>::max()));
  }
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

void ShmWatch::advance() {
  const std::int64_t start_ns = clock_.monotonic_ns();
  if (!is_due(start_ns)) {
    return;
  }
  if (!pass_) {
    makers_.begin_pass();
    pass_.emplace(options_.directory, options_.proc_root, options_.own_uid, &makers_, &search_);
    used_before_bytes_ = used_bytes_;
    pass_began_ns_ = start_ns;
  }
  const double share = report_ ? options_.cost_share : options_.first_cost_share;
  constexpr double kPart = 0.8;  // of what is allowed: else it is not due yet at the next tick
  const auto since_last_ns = static_cast<double>(start_ns - last_slice_ns_);
  const std::int64_t slice_ns = std::clamp(static_cast<std::int64_t>(kPart * share * since_last_ns),
                                           options_.slice_ns, options_.longest_slice_ns);
  last_slice_ns_ = start_ns;
  bool done = false;
  std::int64_t cost_ns = 0;
  const std::int64_t spent_before_ns = options_.spent_ns();
  while (!done && cost_ns < slice_ns) {
    done = pass_->step();
    cost_ns = options_.spent_ns() - spent_before_ns;
  }
  next_slice_ns_ =
      clock_.monotonic_ns() + static_cast<std::int64_t>(static_cast<double>(cost_ns) / share);
  if (!done) {
    return;
  }
  if (pass_->readable()) {
    finish_pass();
  } else {  // as if it stood still
    next_slice_ns_ = std::max(next_slice_ns_, clock_.monotonic_ns() + options_.pass_interval_ns);
  }
  makers_.end_pass();
  pass_.reset();
  interval_ns_ = unconfirmed_ ? options_.least_interval_ns
                              : std::min(2 * interval_ns_, options_.pass_interval_ns);
}

// Costs a small part of what passes do, and does not wait for them.
void ShmWatch::list_own() {
  constexpr double kPartOfShare = 0.1;
  const std::int64_t now_ns = clock_.monotonic_ns();
  if (used_bytes_ == used_listed_bytes_ || !estimate_.wants_listing() ||
      now_ns < next_listing_ns_) {
    return;
  }
  const std::int64_t spent_before_ns = options_.spent_ns();
  estimate_.add_listing(listing_.update(options_.directory, makers_, options_.counts_all));
  used_listed_bytes_ = used_bytes_;
  const auto cost_ns = static_cast<double>(options_.spent_ns() - spent_before_ns);
  next_listing_ns_ =
      now_ns + static_cast<std::int64_t>(cost_ns / (options_.cost_share * kPartOfShare));
}

bool ShmWatch::is_of_job(const ShmSegment& segment) const {
  return options_.counts_all || segment.is_of_job || of_job_.contains(segment.inode);
}

// A segment may change hands while the pass is under way, from a process not yet searched to one
// that was: only what two passes found without a holder counts. Processes that refuse to be read
// can hold no more than what they have: what is beyond that is held by nobody, whichever it is.
void ShmWatch::finish_pass() {
  ShmReport report;
  std::unordered_set<ino_t> of_job;
  std::unordered_set<ino_t> unheld;
  std::uint64_t own_bytes = 0;
  std::uint64_t unheld_bytes = 0;
  std::uint64_t doubtful_bytes = 0;
  const std::uint64_t hidden_bytes = pass_->hidden_bytes();
  unconfirmed_ = false;
  for (const ShmSegment& segment : pass_->segments()) {
    report.named_bytes += segment.allocated_bytes;
    report.unknown_bytes += segment.held ? 0 : segment.allocated_bytes;
    const bool is_own = is_of_job(segment);
    if (is_own) {
      of_job.insert(segment.inode);
      own_bytes += segment.allocated_bytes;
      report.job_unknown_bytes += segment.held ? 0 : segment.allocated_bytes;
    }
    if (segment.held.value_or(!segment.is_bounded)) {
      continue;
    }
    unheld.insert(segment.inode);
    if (!unheld_before_ || !unheld_before_->contains(segment.inode)) {
      // One whose name tells nothing may be the first of many of the job.
      unconfirmed_ |= is_own || !segment.owner_pid;
    } else if (is_own) {
      (segment.held ? unheld_bytes : doubtful_bytes) += segment.allocated_bytes;
      if (segment.held || segment.allocated_bytes > hidden_bytes) {
        report.largest_unheld.push_back(segment);
      }
    } else {
      report.others_unheld_bytes += segment.held ? segment.allocated_bytes : 0;
    }
  }
  // Certain ones need no allowance for those that may be theirs.
  estimate_.add_pass(own_bytes, unheld_bytes + doubtful_bytes,
                     std::min(hidden_bytes, doubtful_bytes));
  listing_.begin(pass_->segments(), of_job);
  if (doubtful_bytes > hidden_bytes) {
    unheld_bytes += doubtful_bytes - hidden_bytes;
    report.unknown_bytes -= doubtful_bytes - hidden_bytes;
    report.job_unknown_bytes -= doubtful_bytes - hidden_bytes;
  }
  report.segments = pass_->segments().size() + pass_->unexamined_segments();
  report.named_bytes += pass_->unexamined_bytes();
  report.unknown_bytes += pass_->unexamined_bytes();
  if (unheld_before_ || unheld.empty()) {
    report.unheld_bytes = unheld_bytes;
  }
  keep_largest(report.largest_unheld);
  report_ = std::move(report);
  unheld_before_ = std::move(unheld);
  of_job_ = std::move(of_job);
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
