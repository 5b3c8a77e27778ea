// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/shm_pass.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_stat.h"
#include "monitor/procfs/proc_status.h"
#include "monitor/procfs/shm_names.h"

namespace tidemark::monitor {
namespace {

constexpr std::size_t kMaxSegments = 16384;
constexpr std::size_t kMaxDepth = 4;  // joblib keeps its files in folders
constexpr int kEntriesPerStep = 64;
constexpr std::uint64_t kBlockBytes = 512;  // unit of st_blocks
// Start times are ticks since boot and the wall clock may have been set: allow for some seconds.
constexpr std::int64_t kClockSlackS = 5;

std::int64_t created_wall_s(const struct statx& info) {
  return (info.stx_mask & STATX_BTIME) != 0 ? info.stx_btime.tv_sec : info.stx_mtime.tv_sec;
}

}  // namespace

ShmPass::ShmPass(const std::string& directory, std::string proc_root, uid_t own_uid)
    : proc_root_(std::move(proc_root)), own_uid_(own_uid) {
  struct stat info {};
  auto stream = DirectoryStream::open_at(AT_FDCWD, directory + "/.");  // it may be a link
  if (stream && ::fstat(stream->fd(), &info) == 0) {
    wanted_.device = info.st_dev;
    readable_ = true;
    levels_.push_back({std::move(*stream), ""});
  }
  if (const auto stat = read_file(proc_root_ + "/stat")) {
    boot_wall_s_ = static_cast<std::int64_t>(keyed_number(*stat, "btime").value_or(0));
  }
}

bool ShmPass::step() {
  if (!listed_) {
    list_some();
    if (levels_.empty()) {
      listed_ = true;
      if (!segments_.empty()) {
        find_processes();
      }
    }
  } else if (!pids_.empty()) {
    const pid_t pid = pids_.back();
    pids_.pop_back();
    look_at_process(pid);
  }
  if (!listed_ || !pids_.empty()) {
    return false;
  }
  judge();
  return true;
}

void ShmPass::list_some() {
  for (int i = 0; i < kEntriesPerStep && !levels_.empty(); ++i) {
    const dirent* const entry = levels_.back().stream.next();
    if (entry == nullptr) {
      levels_.pop_back();
    } else {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") {
        list_entry(levels_.back(), name.c_str());
      }
    }
  }
}

void ShmPass::list_entry(const Level& level, const char* name) {
  std::string path = level.path + name;
  struct stat info {};
  if (is_own_shm_file(path) ||
      ::fstatat(level.stream.fd(), name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return;
  }
  if (S_ISREG(info.st_mode) && info.st_dev == wanted_.device) {
    add_file(std::move(path), level.stream.fd(), name);
  } else if (S_ISDIR(info.st_mode) && levels_.size() < kMaxDepth) {
    auto stream = DirectoryStream::open_at(level.stream.fd(), name);
    if (stream) {
      path += '/';
      levels_.push_back({std::move(*stream), std::move(path)});
    }
  }
}

void ShmPass::add_file(std::string path, int directory, const char* name) {
  struct statx info {};
  constexpr unsigned kMask = STATX_BASIC_STATS | STATX_BTIME;
  if (::statx(directory, name, AT_SYMLINK_NOFOLLOW, kMask, &info) != 0) {
    return;
  }
  const std::uint64_t bytes = info.stx_blocks * kBlockBytes;
  if (segments_.size() >= kMaxSegments) {
    ++unexamined_segments_;
    unexamined_bytes_ += bytes;
    return;
  }
  if (!wanted_.held.emplace(info.stx_ino, false).second) {
    return;  // a second name of a file that we have
  }
  wanted_.names.emplace(name);
  const ShmName known = read_shm_name(path);
  segments_.push_back({std::move(path), known.maker, bytes, created_wall_s(info), info.stx_ino,
                       info.stx_uid, known.pid, std::nullopt, std::nullopt, false});
}

void ShmPass::find_processes() {
  auto stream = DirectoryStream::open_at(AT_FDCWD, proc_root_);
  if (!stream) {
    refused_uids_.insert(own_uid_);
    processes_listed_ = false;
    return;
  }
  while (const dirent* entry = stream->next()) {
    const auto pid = parse_number<pid_t>(std::string_view(entry->d_name));
    if (pid && *pid != ::getpid()) {
      pids_.push_back(*pid);
    }
  }
}

void ShmPass::look_at_process(pid_t pid) {
  if (look_for_held_files(proc_root_, pid, wanted_) != Looked::kRefused) {
    return;
  }
  const auto text = read_file(fmt::format("{}/{}/status", proc_root_, pid));
  const auto status = text ? parse_status(*text) : Result<StatusFields>(text.error());
  // One without a page of shared memory is no holder worth the name. Most that refuse are such:
  // zombies, the kernel's own, ssh-agent, (sd-pam).
  if (status && status->rss_shmem_bytes.value_or(0) > 0) {
    refused_uids_.insert(status->uid);
    const bool may_hold = own_uid_ == 0 || status->uid == own_uid_;
    hidden_bytes_ += may_hold ? *status->rss_shmem_bytes : 0;
  }
}

void ShmPass::judge() {
  for (ShmSegment& segment : segments_) {
    segment.held = is_held(segment);
    // Of other users' processes only root knows how much they have.
    const bool seen_all = processes_listed_ && (own_uid_ == 0 || segment.uid == own_uid_);
    segment.is_bounded = !segment.held && seen_all;
    if (segment.owner_pid) {
      segment.owner_alive = is_alive(*segment.owner_pid, segment.created_wall_s);
    }
  }
}

std::optional<bool> ShmPass::is_held(const ShmSegment& segment) const {
  if (wanted_.held.at(segment.inode)) {
    return true;
  }
  const bool own = segment.uid == own_uid_;
  const bool others_are_hidden = own_uid_ != 0 || !refused_uids_.empty();
  if (refused_uids_.contains(segment.uid) || (!own && others_are_hidden)) {
    return std::nullopt;
  }
  return false;
}

bool ShmPass::is_alive(pid_t pid, std::int64_t since_wall_s) {
  const auto [found, is_new] = start_wall_s_.try_emplace(pid);
  if (is_new) {
    const auto text = read_file(fmt::format("{}/{}/stat", proc_root_, pid));
    const auto stat = text ? parse_stat(*text) : Result<StatFields>(text.error());
    if (stat && stat->state != 'Z') {
      const auto ticks_per_s = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
      found->second = boot_wall_s_ + static_cast<std::int64_t>(stat->start_ticks / ticks_per_s);
    }
  }
  return found->second && *found->second <= since_wall_s + kClockSlackS;
}

}  // namespace tidemark::monitor
