// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/shm_pass.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/proc_files.h"

namespace tidemark::monitor {
namespace {

struct NameRule {
  std::string_view prefix;
  std::string_view maker;
  bool pid_follows;
};

// The first match counts.
constexpr std::array<NameRule, 16> kRules{{
    {"torch_", "torch", true},                         // torch_PID_RANDOM_N (file_system strategy)
    {"pym-", "multiprocessing heap", true},            // pym-PID-RANDOM
    {"joblib_memmapping_folder_", "joblib", true},     // joblib_memmapping_folder_PID_HASH_HASH/
    {"sem.loky-", "loky semaphore", true},             // sem.loky-PID-RANDOM
    {"loky-", "loky", true},                           // loky-PID-RANDOM
    {"psm_", "multiprocessing.shared_memory", false},  // psm_RANDOM
    {"sem.mp-", "multiprocessing semaphore", false},
    {"sem.", "semaphore", false},
    {"nccl-", "nccl", false},
    {"plasma", "ray", false},
    {"vader_segment.", "openmpi", false},
    {"sm_segment.", "openmpi", false},
    {"ucx_shm_", "ucx", false},
    {"cuda.shm.", "cuda", false},
    {"pulse-shm-", "pulseaudio", false},
    {".org.chromium.", "chromium", false},
}};

// The number up to the next '_' or '-'.
std::optional<pid_t> leading_pid(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  const auto length = static_cast<std::size_t>(end - text.data());
  const bool ends_well = length < text.size() && (text[length] == '_' || text[length] == '-');
  return error == std::errc{} && ends_well && pid > 0 ? std::optional(pid) : std::nullopt;
}

constexpr std::size_t kMaxSegments = 16384;
constexpr std::size_t kMaxDepth = 4;  // joblib keeps its files in folders
constexpr int kEntriesPerStep = 64;

}  // namespace

std::optional<ShmFile> read_shm_file(int directory, const char* name) {
  struct statx info {};
  constexpr unsigned kMask = STATX_BASIC_STATS | STATX_BTIME;
  if (::statx(directory, name, AT_SYMLINK_NOFOLLOW, kMask, &info) != 0 || !S_ISREG(info.stx_mode)) {
    return std::nullopt;
  }
  const bool has_birth = (info.stx_mask & STATX_BTIME) != 0;
  return ShmFile{info.stx_blocks * kBlockBytes,
                 has_birth ? info.stx_btime.tv_sec : info.stx_mtime.tv_sec, info.stx_ino,
                 info.stx_uid, ::makedev(info.stx_dev_major, info.stx_dev_minor)};
}

ShmName read_shm_name(std::string_view path) {
  const std::string_view name = path.substr(0, path.find('/'));
  for (const NameRule& rule : kRules) {
    if (!name.starts_with(rule.prefix)) {
      continue;
    }
    if (!rule.pid_follows) {
      return {rule.maker, std::nullopt};
    }
    if (const auto pid = leading_pid(name.substr(rule.prefix.size()))) {
      return {rule.maker, pid};
    }
  }
  return {};
}

bool is_own_shm_file(std::string_view path) {
  constexpr std::string_view kPrefix = "tidemark-";  // a folder for each user: tidemark-UID
  if (!path.starts_with(kPrefix)) {
    return false;
  }
  path.remove_prefix(kPrefix.size());
  return parse_number<uid_t>(path.substr(0, path.find('/'))).has_value();
}

ShmPass::ShmPass(const std::string& directory, std::string proc_root, uid_t own_uid,
                 const ShmMakers* job, HolderSearch* search)
    : proc_root_(std::move(proc_root)),
      own_uid_(own_uid),
      job_(job),
      search_(search),
      boot_wall_s_(boot_wall_s(proc_root_)) {
  if (search_ == nullptr) {
    search_ = &own_search_.emplace(proc_root_);
  }
  struct stat info {};
  auto stream = DirectoryStream::open_at(AT_FDCWD, directory + "/.");  // it may be a link
  if (stream && ::fstat(stream->fd(), &info) == 0) {
    wanted_ = WantedFiles(info.st_dev);
    readable_ = true;
    levels_.push_back({std::move(*stream), ""});
  }
}

bool ShmPass::step() {
  if (!levels_.empty()) {
    list_some();
    return false;
  }
  if (!searches_) {
    searches_ = true;
    if (!segments_.empty()) {
      find_processes();
    }
  } else if (!pids_.empty()) {
    const pid_t pid = pids_.back();
    pids_.pop_back();
    search_process(pid);
  }
  // Those of the job are searched first: what others hold as well tells nothing more.
  const bool has_job_left = !pids_.empty() && is_of_job(pids_.back());
  if (!pids_.empty() && (has_job_left || !wanted_.are_all_held())) {
    return false;
  }
  find_unheld();
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
  if (is_own_shm_file(path)) {
    return;
  }
  if (const auto file = read_shm_file(level.stream.fd(), name)) {
    if (file->device == wanted_.device()) {
      add_file(std::move(path), *file, name);
    }
    return;
  }
  struct stat info {};
  if (levels_.size() < kMaxDepth &&
      ::fstatat(level.stream.fd(), name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISDIR(info.st_mode)) {
    auto stream = DirectoryStream::open_at(level.stream.fd(), name);
    if (stream) {
      path += '/';
      levels_.push_back({std::move(*stream), std::move(path)});
    }
  }
}

void ShmPass::add_file(std::string path, const ShmFile& file, const char* name) {
  if (segments_.size() >= kMaxSegments) {
    ++unexamined_segments_;
    unexamined_bytes_ += file.allocated_bytes;
    return;
  }
  if (!wanted_.add(file.inode, name)) {
    return;  // a second name of a file that we have
  }
  const ShmName known = read_shm_name(path);
  const bool is_of_job =
      job_ != nullptr && known.pid && job_->may_have_made(*known.pid, file.created_wall_s);
  segments_.push_back({std::move(path), known.maker, file.allocated_bytes, file.created_wall_s,
                       file.inode, file.uid, known.pid, std::nullopt, std::nullopt, false,
                       is_of_job});
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
  search_->keep_only(pids_);
  std::partition(pids_.begin(), pids_.end(), [this](pid_t pid) { return !is_of_job(pid); });
}

void ShmPass::search_process(pid_t pid) {
  wanted_.begin_process(is_of_job(pid) ? Holder::kJob : Holder::kStranger);
  if (search_->mark_held_files(pid, wanted_) != Searched::kRefused) {
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

void ShmPass::find_unheld() {
  for (ShmSegment& segment : segments_) {
    segment.held = is_held(segment);
    segment.is_of_job |= wanted_.holder_of(segment.inode) == Holder::kJob;
    // Of other users' processes only root knows how much they have.
    const bool seen_all = processes_listed_ && (own_uid_ == 0 || segment.uid == own_uid_);
    segment.is_bounded = !segment.held && seen_all;
    if (segment.owner_pid) {
      segment.owner_alive = is_alive(*segment.owner_pid, segment.created_wall_s);
    }
  }
}

std::optional<bool> ShmPass::is_held(const ShmSegment& segment) const {
  if (wanted_.holder_of(segment.inode) != Holder::kNone) {
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
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    if (stat && !has_ended(*stat)) {
      found->second = start_wall_s(boot_wall_s_, stat->start_ticks);
    }
  }
  return found->second && *found->second <= since_wall_s + kClockSlackS;
}

}  // namespace tidemark::monitor
