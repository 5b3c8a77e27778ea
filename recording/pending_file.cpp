// SPDX-License-Identifier: Apache-2.0
#include "recording/pending_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/fd.h"
#include "common/io.h"
#include "common/text.h"

namespace tidemark::recording {
namespace {

// Files that SQLite keeps beside a database. Left over from another one, they would be taken for
// ours.
constexpr std::array<std::string_view, 3> kCompanions{"-wal", "-journal", "-shm"};

Error already_exists(const std::string& path) {
  Error error = system_error(fmt::format("cannot create {}", path), EEXIST);
  error.what += "; choose another name, or replace it with --force";
  return error;
}

std::string companion(const std::string& path, std::string_view suffix) {
  return path + std::string(suffix);
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

Status check_nothing_there(const std::string& path) {
  if (exists(path)) {
    return already_exists(path);
  }
  for (const std::string_view suffix : kCompanions) {
    if (exists(companion(path, suffix))) {
      return already_exists(companion(path, suffix));
    }
  }
  return ok();
}

Status check_replaceable(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return ok();  // nothing to replace; other trouble shows when the file is made
  }
  if (!S_ISREG(info.st_mode)) {
    return Error{Errc::kUsage, fmt::format("{} is not a regular file: it is not replaced", path)};
  }
  if (const auto pid = process_that_has_open(path)) {
    return Error{Errc::kUsage, fmt::format("{} is in use by process {}: it is not replaced; stop "
                                           "that recording or choose another name",
                                           path, *pid)};
  }
  return ok();
}

std::string resolve_links(const std::string& path) {
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

std::string temporary_name(const std::string& path) {
  const std::string_view base = basename_of(path);
  const std::string_view directory = std::string_view(path).substr(0, path.size() - base.size());
  return fmt::format("{}.{}.XXXXXX", directory, base);
}

int rename_exclusively(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return errno;
  }
  // A file system without that flag (NFS): a hard link does not replace either.
  if (::link(from.c_str(), to.c_str()) != 0) {
    return errno;
  }
  ::unlink(from.c_str());
  return 0;
}

}  // namespace

std::optional<pid_t> process_that_has_open(const std::string& path) {
  const auto fd = open_file(path, O_RDONLY | O_NONBLOCK);
  if (!fd) {
    return std::nullopt;
  }
  // Every connection in WAL mode holds a lock on a byte of this range for as long as it lives:
  // "SHARED_FIRST" and "SHARED_SIZE" of SQLite's os.h, part of its file format.
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 0x40000002;
  lock.l_len = 510;
  if (::fcntl(fd->get(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) {
    return std::nullopt;
  }
  return lock.l_pid;
}

Result<PendingFile> PendingFile::create(const std::string& path, bool replace) {
  if (path.empty() || basename_of(path).empty()) {
    return Error{Errc::kUsage, fmt::format("'{}' is not the name of a file", path)};
  }
  const std::string target = replace ? resolve_links(path) : path;
  const Status allowed = replace ? check_replaceable(target) : check_nothing_there(target);
  if (!allowed) {
    return allowed.error();
  }
  std::string temporary = temporary_name(target);
  const Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) {
    return system_error(fmt::format("cannot create {}", path), errno);
  }
  PendingFile file(target, temporary, replace);
  if (::fchmod(fd.get(), S_IRUSR | S_IWUSR) != 0) {  // a umask may have taken more away
    return system_error(fmt::format("cannot make {} private", path), errno);
  }
  return file;
}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::exchange(other.temporary_path_, {})),
      replace_(other.replace_) {}

PendingFile::~PendingFile() {
  if (!temporary_path_.empty()) {
    ::unlink(companion(temporary_path_, "-journal").c_str());
    ::unlink(temporary_path_.c_str());
  }
}

Status PendingFile::publish() {
  if (replace_) {
    for (const std::string_view suffix : kCompanions) {
      ::unlink(companion(path_, suffix).c_str());
    }
    if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
      return system_error(fmt::format("cannot create {}", path_), errno);
    }
  } else if (const int error = rename_exclusively(temporary_path_, path_); error != 0) {
    return error == EEXIST ? already_exists(path_)
                           : system_error(fmt::format("cannot create {}", path_), error);
  }
  temporary_path_.clear();
  return ok();
}

}  // namespace tidemark::recording
