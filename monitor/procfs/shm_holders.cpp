// SPDX-License-Identifier: Apache-2.0
#include "monitor/procfs/shm_holders.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "common/text.h"
#include "monitor/procfs/kernel_text.h"

namespace tidemark::monitor {
namespace {

constexpr std::size_t kMostThreads = 64;  // of more a search costs less than a look at each

std::size_t hash_of(std::string_view name) { return std::hash<std::string_view>{}(name); }

Searched outcome(const Error& error) {
  return error.code == Errc::kGone || error.code == Errc::kNotFound ? Searched::kGone
                                                                    : Searched::kRefused;
}

// How long each thread of a process has run and how often, as one number; nullopt where the kernel
// does not count it. See "schedstat" in the kernel's Documentation/scheduler/sched-stats.rst.
std::optional<std::uint64_t> activity_of(int process) {
  auto tasks = DirectoryStream::open_at(process, "task");
  std::string all;
  std::size_t threads = 0;
  while (const dirent* entry = tasks ? tasks->next() : nullptr) {
    if (entry->d_name[0] == '.') {
      continue;
    }
    const auto fd =
        open_at(tasks->fd(), (std::string(entry->d_name) + "/schedstat").c_str(), O_RDONLY);
    std::array<char, 96> buffer;
    const auto size = fd ? pread_full(fd->get(), buffer) : Result<std::size_t>(fd.error());
    const std::string_view text(buffer.data(), size ? *size : 0);
    if (++threads > kMostThreads || text.empty() || text.starts_with("0 0 0")) {
      return std::nullopt;
    }
    all += entry->d_name;
    all += ' ';
    all += text;
  }
  return threads == 0 ? std::nullopt : std::optional<std::uint64_t>(hash_of(all));
}

// The inodes of the mappings on a device.
template <typename Take>
void for_each_mapped(std::string_view maps, dev_t device, Take take) {
  const std::string wanted = fmt::format("{:02x}:{:02x}", ::major(device), ::minor(device));
  std::string_view line;
  while (take_line(maps, line)) {
    take_word(line);  // range
    take_word(line);  // permissions
    take_word(line);  // offset
    if (take_word(line) == wanted) {
      if (const auto inode = parse_number<ino_t>(take_word(line))) {
        take(*inode);
      }
    }
  }
}

Searched search_maps(int directory, WantedFiles& wanted, std::vector<ino_t>& mapped) {
  auto fd = open_at(directory, "maps", O_RDONLY);
  if (!fd) {
    return outcome(fd.error());
  }
  const auto read = read_whole_lines(fd->get(), [&](std::string_view lines) {
    for_each_mapped(lines, wanted.device(), [&](ino_t inode) {
      wanted.mark(inode);
      if (mapped.empty() || mapped.back() != inode) {
        mapped.push_back(inode);
      }
    });
    return true;
  });
  return read ? Searched::kYes : outcome(read.error());
}

// Asks for the inode only when the name fits: a stat of any file that a stranger has open may
// hang, on a dead network file system for example.
void search_link(int descriptors, const char* number, WantedFiles& wanted,
                 std::vector<std::size_t>& open_hashes) {
  const auto path = read_link_at(descriptors, number);
  if (!path || !path->starts_with('/') || path->ends_with(" (deleted)")) {
    return;  // no file, or what is deleted and has no name any more
  }
  const std::size_t hash = hash_of(basename_of(*path));
  if (std::find(open_hashes.begin(), open_hashes.end(), hash) == open_hashes.end()) {
    open_hashes.push_back(hash);
  }
  struct stat info {};
  if (wanted.may_be_named(hash) && ::fstatat(descriptors, number, &info, 0) == 0 &&
      info.st_dev == wanted.device()) {
    wanted.mark(info.st_ino);
  }
}

Searched search_descriptors(int directory, WantedFiles& wanted,
                            std::vector<std::size_t>& open_hashes) {
  auto stream = DirectoryStream::open_at(directory, "fd");
  if (!stream) {
    return outcome(stream.error());
  }
  while (const dirent* entry = stream->next()) {
    if (entry->d_name[0] != '.') {
      search_link(stream->fd(), entry->d_name, wanted, open_hashes);
    }
  }
  return Searched::kYes;
}

}  // namespace

bool WantedFiles::add(ino_t inode, std::string_view name) {
  if (!holders_.emplace(inode, Holder::kNone).second) {
    return false;
  }
  name_hashes_.insert(hash_of(name));
  ++unheld_;
  return true;
}

void WantedFiles::mark(ino_t inode) {
  const auto found = holders_.find(inode);
  if (found != holders_.end()) {
    unheld_ -= found->second == Holder::kNone ? 1U : 0U;
    found->second = std::max(found->second, searched_);
  }
}

void mark_mapped_files(std::string_view text, WantedFiles& wanted) {
  for_each_mapped(text, wanted.device(), [&](ino_t inode) { wanted.mark(inode); });
}

// False when it has to be searched again: a name fits one of its open files.
bool HolderSearch::mark_again(const Found& found, WantedFiles& wanted) {
  if (found.device != wanted.device() ||
      std::any_of(found.open_hashes.begin(), found.open_hashes.end(),
                  [&](std::size_t hash) { return wanted.may_be_named(hash); })) {
    return false;
  }
  for (const ino_t inode : found.mapped) {
    wanted.mark(inode);
  }
  return true;
}

Searched HolderSearch::mark_held_files(pid_t pid, WantedFiles& wanted) {
  auto directory = open_file(fmt::format("{}/{}", proc_root_, pid), O_PATH | O_DIRECTORY);
  if (!directory) {
    return outcome(directory.error());
  }
  // Before the search: what runs meanwhile is searched again in the next pass.
  const auto activity = activity_of(directory->get());
  const auto known = found_.find(pid);
  if (activity && known != found_.end() && known->second.activity == *activity &&
      mark_again(known->second, wanted)) {
    return Searched::kYes;
  }
  Found found;
  const Searched maps = search_maps(directory->get(), wanted, found.mapped);
  const Searched descriptors = search_descriptors(directory->get(), wanted, found.open_hashes);
  if (maps == Searched::kRefused || descriptors == Searched::kRefused) {
    return Searched::kRefused;
  }
  if (maps == Searched::kGone || descriptors == Searched::kGone) {
    return Searched::kGone;
  }
  if (activity) {
    found.activity = *activity;
    found.device = wanted.device();
    found_.insert_or_assign(pid, std::move(found));
  }
  return Searched::kYes;
}

void HolderSearch::keep_only(const std::vector<pid_t>& pids) {
  const std::unordered_set<pid_t> running(pids.begin(), pids.end());
  std::erase_if(found_, [&](const auto& each) { return !running.contains(each.first); });
}

}  // namespace tidemark::monitor
