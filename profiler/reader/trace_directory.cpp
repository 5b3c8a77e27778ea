// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/trace_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"
#include "profiler/reader/trace_file.h"
#include "profiler/reader/trace_world.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRunPrefix = "trace-";
constexpr std::size_t kMostFolderEntries = 4096;  // of a folder that we look through
// Of free space: the files of many processes that hold millions of blocks, and the tracer leaves
// the larger part of it to others.
constexpr std::uint64_t kRoomyBytes = std::uint64_t{512} << 20U;

std::optional<std::string> from_environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && value[0] == '/' ? std::optional<std::string>(value) : std::nullopt;
}

// What a folder holds; nothing when it cannot be listed.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end;
       !error && it != end && entries.size() < kMostFolderEntries; it.increment(error)) {
    entries.push_back(it->path());
  }
  return entries;
}

// Ours alone, made if need be; somebody else's or a link is refused.
Status make_private(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return system_error(fmt::format("cannot make {}", path), errno);
  }
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return system_error(fmt::format("cannot look at {}", path), errno);
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 0077U) != 0) {
    return Error{Errc::kPermission, fmt::format("{} is not a private folder of yours", path)};
  }
  return ok();
}

Result<Fd> take_lock(const fs::path& folder, int flags = O_CREAT) {
  auto file = open_file((folder / wire::kOwnerLock).string(), O_RDWR | O_NOFOLLOW | flags, 0600);
  if (file && ::flock(file->get(), LOCK_EX | LOCK_NB) != 0) {
    return system_error("its owner is alive", errno);
  }
  return file;
}

bool is_of_living_process(const fs::path& path, TraceWorld& world) {
  const auto file = TraceFile::open(path.string());
  if (!file) {
    return false;
  }
  const auto key = world.find(file->identity());
  return key && world.is_alive(*key);
}

// What a killed run has left behind goes, unless one of its processes still runs.
void tidy_up(const std::string& base) {
  const auto world = make_trace_world();
  for (const fs::path& folder : entries_of(base)) {
    std::error_code error;
    if (!folder.filename().string().starts_with(kRunPrefix) ||
        !fs::is_directory(fs::symlink_status(folder, error))) {
      continue;
    }
    const auto lock = take_lock(folder);
    bool is_in_use = !lock;
    for (const fs::path& file : entries_of(folder)) {
      is_in_use = is_in_use ||
                  (file.extension() == wire::kTraceSuffix && is_of_living_process(file, *world));
    }
    if (!is_in_use) {
      fs::remove_all(folder, error);
    }
  }
}

// A file system that has no size, or does not tell it, is roomy.
std::uint64_t free_bytes_at(const std::string& base) {
  struct statvfs space {};
  const std::string parent = fs::path(base).parent_path().string();
  if ((::statvfs(base.c_str(), &space) != 0 && ::statvfs(parent.c_str(), &space) != 0) ||
      space.f_blocks == 0) {
    return kRoomyBytes;
  }
  return space.f_bavail * space.f_frsize;
}

Result<std::string> make_in(const std::string& base, std::uint64_t least_free_bytes) {
  TIDEMARK_TRY(make_private(base));
  if (free_bytes_at(base) < least_free_bytes) {
    return Error{Errc::kNoSpace, fmt::format("{} is full", base)};
  }
  tidy_up(base);
  std::string path = fmt::format("{}/{}XXXXXX", base, kRunPrefix);
  if (::mkdtemp(path.data()) == nullptr) {
    return system_error(fmt::format("cannot make a folder in {}", base), errno);
  }
  return path;
}

}  // namespace

std::vector<std::string> trace_bases() {
  std::vector<std::string> parents = {"/dev/shm"};
  if (const auto runtime = from_environment("XDG_RUNTIME_DIR")) {
    parents.push_back(*runtime);
  }
  parents.push_back(from_environment("TMPDIR").value_or("/tmp"));
  for (std::string& parent : parents) {
    parent = fmt::format("{}/tidemark-{}", parent, ::geteuid());
  }
  return parents;
}

Result<TraceDirectory> TraceDirectory::create(const std::vector<std::string>& bases,
                                              std::uint64_t least_free_bytes) {
  std::vector<std::string> by_room = bases;
  std::stable_sort(by_room.begin(), by_room.end(), [](const std::string& a, const std::string& b) {
    return std::min(free_bytes_at(a), kRoomyBytes) > std::min(free_bytes_at(b), kRoomyBytes);
  });
  std::string problems;
  for (const std::string& base : by_room) {
    auto path = make_in(base, least_free_bytes);
    if (!path) {
      problems += (problems.empty() ? "" : "; ") + path.error().what;
      continue;
    }
    auto lock = take_lock(*path);
    if (lock) {
      return TraceDirectory(*std::move(path), *std::move(lock));
    }
    problems += (problems.empty() ? "" : "; ") + lock.error().what;
    ::rmdir(path->c_str());
  }
  return Error{Errc::kNoSpace, "there is no place for the tracer's files: " + problems};
}

TraceDirectory::TraceDirectory(std::string path, Fd lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

TraceDirectory::TraceDirectory(TraceDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

TraceDirectory::~TraceDirectory() {
  if (!path_.empty()) {
    std::error_code ignored;  // a destructor has nobody to tell
    fs::remove_all(path_, ignored);
  }
}

std::optional<Fd> adopt_trace_folder(const std::string& directory) {
  auto lock = take_lock(directory, 0);
  return lock ? std::optional<Fd>(*std::move(lock)) : std::nullopt;
}

std::optional<std::string> find_trace_of(pid_t pid, const std::vector<std::string>& bases) {
  return find_trace_of_any(std::span(&pid, 1), bases);
}

std::optional<std::string> find_trace_of_any(std::span<const pid_t> pids,
                                             const std::vector<std::string>& bases) {
  const auto world = make_trace_world();
  const auto is_his = [&](const fs::path& path) {
    const auto file = TraceFile::open(path.string());
    if (!file) {
      return false;
    }
    const auto key = world->find(file->identity());
    return key && std::find(pids.begin(), pids.end(), key->pid) != pids.end() &&
           world->is_alive(*key);
  };
  for (const std::string& base : bases) {
    std::vector<fs::path> folders = entries_of(base);
    folders.emplace_back(base);
    for (const fs::path& folder : folders) {
      for (const fs::path& file : entries_of(folder)) {
        if (file.extension() == wire::kTraceSuffix && is_his(file)) {
          return folder.string();
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace tidemark::reader
