// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/trace_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

// Ours alone. In /dev/shm anybody can make a folder or a link of that name before us.
Status check_private(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return system_error(fmt::format("cannot look at {}", path), errno);
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 0077U) != 0) {
    return Error{Errc::kPermission, fmt::format("{} is not a private folder of yours", path)};
  }
  return ok();
}

Status make_private(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return system_error(fmt::format("cannot make {}", path), errno);
  }
  return check_private(path);
}

std::string path_through(const Fd& folder) { return fmt::format("/proc/self/fd/{}", folder.get()); }

// Looked at before it is opened: opening a device may have effects.
Result<Fd> open_regular(const std::string& path, int flags) {
  TIDEMARK_TRY_ASSIGN(const auto place, open_file(path, O_PATH | O_NOFOLLOW));
  struct stat info {};
  if (::fstat(place.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Error{Errc::kPermission, fmt::format("{} is not a file", path)};
  }
  return open_file(path_through(place), flags);
}

// `creating`: O_CREAT, with or without O_EXCL; 0: it must be there.
Result<Fd> take_lock(const fs::path& folder, int creating = O_CREAT) {
  const std::string path = (folder / wire::kOwnerLock).string();
  auto file = creating == 0 ? open_regular(path, O_RDWR)
                            : open_file(path, O_RDWR | O_NOFOLLOW | creating, 0600);
  if (file && ::flock(file->get(), LOCK_EX | LOCK_NB) != 0) {
    return system_error("its owner is alive", errno);
  }
  return file;
}

// Whether a folder has a trace file, of this owner, of a living process that `is_wanted`.
template <typename Wanted>
bool has_wanted_trace(const std::string& folder, uid_t owner, TraceWorld& world, Wanted is_wanted) {
  for (const fs::path& path : entries_of(folder)) {
    std::error_code error;
    if (path.extension() != wire::kTraceSuffix ||
        !fs::is_regular_file(fs::symlink_status(path, error))) {
      continue;
    }
    TraceOpenOptions options;
    options.owner = owner;
    const auto file = TraceFile::open(path.string(), options);
    const auto key = file ? world.find(file->identity()) : std::nullopt;
    if (key && world.is_alive(*key) && is_wanted(*key)) {
      return true;
    }
  }
  return false;
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
    if (lock && !has_wanted_trace(folder.string(), ::geteuid(), *world,
                                  [](const ProcessKey& /*any*/) { return true; })) {
      fs::remove_all(folder, error);
    }
  }
}

// Where processes of other users, or in containers, may have their trace files.
constexpr std::array<std::string_view, 2> kForeignParents{"/dev/shm", "/tmp"};
constexpr std::string_view kForeignPrefix = "tidemark-trace-";

// Through no link: one with an absolute path would lead from the files of a container to ours.
Result<Fd> open_in_view_of(pid_t pid, std::string_view folder) {
  TIDEMARK_TRY_ASSIGN(auto at, open_file(fmt::format("/proc/{}/root", pid), O_PATH | O_DIRECTORY));
  for (const fs::path& name : fs::path(folder).relative_path()) {
    TIDEMARK_TRY_ASSIGN(at, open_at(at.get(), name.string(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  }
  return at;
}

std::vector<std::string> foreign_folders(const Fd& parent) {
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(path_through(parent))) {
    if (std::string name = entry.filename().string(); name.starts_with(kForeignPrefix)) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

void tidy_up_elsewhere(const Fd& parent, uid_t owner) {
  const auto world = make_trace_world();
  for (const std::string& name : foreign_folders(parent)) {
    const auto folder = open_at(parent.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    struct stat status {};
    if (!folder || ::fstat(folder->get(), &status) != 0 || status.st_uid != owner) {
      continue;
    }
    const std::string path = path_through(*folder);
    if (!take_lock(path, 0) ||
        has_wanted_trace(path, owner, *world, [](const ProcessKey& /*any*/) { return true; })) {
      continue;
    }
    for (const fs::path& file : entries_of(path)) {
      ::unlinkat(folder->get(), file.filename().c_str(), 0);
    }
    ::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR);
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

// Beside a base whose name another user has taken; nobody can know this one before.
Result<std::string> make_beside(const std::string& base, std::uint64_t least_free_bytes) {
  const std::string parent = fs::path(base).parent_path().string();
  if (free_bytes_at(base) < least_free_bytes) {
    return Error{Errc::kNoSpace, fmt::format("{} is full", parent)};
  }
  if (const auto above = open_file(parent, O_RDONLY | O_DIRECTORY)) {
    tidy_up_elsewhere(*above, ::geteuid());
  }
  std::string path = fmt::format("{}/{}XXXXXX", parent, kForeignPrefix);
  if (::mkdtemp(path.data()) == nullptr) {
    return system_error(fmt::format("cannot make a folder in {}", parent), errno);
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
  for (const auto make : {make_in, make_beside}) {
    for (const std::string& base : by_room) {
      auto path = make(base, least_free_bytes);
      auto lock = path ? take_lock(*path) : Result<Fd>(path.error());
      if (lock) {
        return TraceDirectory(*std::move(path), *std::move(lock));
      }
      problems += (problems.empty() ? "" : "; ") + lock.error().what;
      if (path) {
        ::rmdir(path->c_str());
      }
    }
  }
  return Error{Errc::kNoSpace, "there is no place for the tracer's files: " + problems};
}

TraceDirectory::TraceDirectory(std::string path, Fd lock)
    : path_(std::move(path)), seen_as_(path_), lock_(std::move(lock)) {}

TraceDirectory::TraceDirectory(TraceDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      seen_as_(std::move(other.seen_as_)),
      owner_(other.owner_),
      is_kept_(other.is_kept_),
      folder_(std::move(other.folder_)),
      parent_(std::move(other.parent_)),
      lock_(std::move(other.lock_)) {}

TraceDirectory::~TraceDirectory() {
  if (path_.empty() || is_kept_) {
    return;
  }
  std::error_code ignored;  // a destructor has nobody to tell
  if (!parent_) {
    fs::remove_all(path_, ignored);
    return;
  }
  for (const fs::path& file : entries_of(path_)) {
    ::unlinkat(folder_.get(), file.filename().c_str(), 0);
  }
  ::unlinkat(parent_.get(), fs::path(seen_as_).filename().c_str(), AT_REMOVEDIR);
}

Result<TraceDirectory> TraceDirectory::create_for(pid_t pid,
                                                  const std::vector<std::string>& bases) {
  struct stat process {};
  struct stat own_namespace {};
  struct stat its_namespace {};
  struct stat own_root {};
  struct stat its_root {};
  const std::string proc = fmt::format("/proc/{}", pid);
  if (::stat(proc.c_str(), &process) != 0) {
    return Error{Errc::kNotFound, fmt::format("there is no process {}", pid)};
  }
  if (::stat("/proc/self/ns/mnt", &own_namespace) != 0 || ::stat("/", &own_root) != 0 ||
      ::stat((proc + "/ns/mnt").c_str(), &its_namespace) != 0 ||
      ::stat((proc + "/root").c_str(), &its_root) != 0) {
    return system_error(fmt::format("cannot see the files of process {}", pid), errno);
  }
  const bool has_our_view = own_namespace.st_ino == its_namespace.st_ino &&
                            own_root.st_ino == its_root.st_ino &&
                            own_root.st_dev == its_root.st_dev;
  return has_our_view && process.st_uid == ::geteuid()
             ? create(bases)
             : create_in_view_of(pid, process.st_uid, process.st_gid);
}

TraceDirectory TraceDirectory::make(Fd folder, Fd parent, Fd lock, std::string seen_as,
                                    uid_t owner) {
  TraceDirectory made(path_through(folder), std::move(lock));
  made.folder_ = std::move(folder);
  made.parent_ = std::move(parent);
  made.seen_as_ = std::move(seen_as);
  made.owner_ = owner;
  return made;
}

Result<TraceDirectory> TraceDirectory::create_in_view_of(pid_t pid, uid_t uid, gid_t gid) {
  std::string problems;
  for (const std::string_view parent : kForeignParents) {
    auto above = open_in_view_of(pid, parent);
    if (!above) {
      problems += (problems.empty() ? "" : "; ") + above.error().what;
      continue;
    }
    tidy_up_elsewhere(*above, uid);
    // Of a name that nobody can know before, so that nobody has put a link there.
    std::string path = fmt::format("{}/{}XXXXXX", path_through(*above), kForeignPrefix);
    if (::mkdtemp(path.data()) == nullptr) {
      problems += (problems.empty() ? "" : "; ") + system_error(std::string(parent), errno).what;
      continue;
    }
    const std::string name = fs::path(path).filename().string();
    TIDEMARK_TRY_ASSIGN(auto folder,
                        open_at(above->get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    TIDEMARK_TRY_ASSIGN(auto lock, take_lock(path_through(folder), O_CREAT | O_EXCL));
    TraceDirectory made = make(std::move(folder), *std::move(above), std::move(lock),
                               fmt::format("{}/{}", parent, name), uid);
    if (::fchown(made.folder_.get(), uid, gid) != 0 || ::fchown(made.lock_.get(), uid, gid) != 0) {
      return system_error(
          fmt::format("cannot give {} to the user of process {}", made.seen_as_, pid), errno);
    }
    return made;
  }
  return Error{Errc::kNoSpace,
               fmt::format("process {} has no place for its trace file: {}", pid, problems)};
}

std::optional<TraceDirectory> TraceDirectory::find_in_view_of(pid_t pid) {
  struct stat process {};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &process) != 0) {
    return std::nullopt;
  }
  const auto world = make_trace_world();
  for (const std::string_view parent : kForeignParents) {
    auto above = open_in_view_of(pid, parent);
    for (const std::string& name : above ? foreign_folders(*above) : std::vector<std::string>()) {
      auto folder = open_at(above->get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      if (!folder || !has_wanted_trace(path_through(*folder), process.st_uid, *world,
                                       [&](const ProcessKey& key) { return key.pid == pid; })) {
        continue;
      }
      if (auto lock = take_lock(path_through(*folder), 0)) {
        return make(*std::move(folder), *std::move(above), *std::move(lock),
                    fmt::format("{}/{}", parent, name), process.st_uid);
      }
    }
  }
  return std::nullopt;
}

Result<Fd> adopt_trace_folder(const std::string& directory) { return take_lock(directory, 0); }

// Shared, so that two who ask at one time do not take each other for an owner.
bool trace_folder_is_left(const std::string& directory) {
  const auto lock =
      open_file((fs::path(directory) / wire::kOwnerLock).string(), O_RDONLY | O_NOFOLLOW);
  return lock && ::flock(lock->get(), LOCK_SH | LOCK_NB) == 0;
}

bool has_trace_of(const std::string& directory, uid_t owner, pid_t pid) {
  const auto world = make_trace_world();
  return has_wanted_trace(directory, owner, *world,
                          [&](const ProcessKey& key) { return key.pid == pid; });
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
    if (!check_private(base)) {
      continue;
    }
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
