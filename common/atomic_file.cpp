// SPDX-License-Identifier: Apache-2.0
#include "common/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "common/io.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

bool is_special(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Of the file that it replaces, so that a private one does not become everybody's.
Status copy_rights(const struct stat& old, int draft) {
  // Only root can give it away; to anybody else it belongs already, or never will.
  if (old.st_uid != ::geteuid() && ::fchown(draft, old.st_uid, old.st_gid) != 0 && errno != EPERM) {
    return system_error("cannot keep its owner", errno);
  }
  if (::fchmod(draft, old.st_mode & 07777) != 0) {
    return system_error("cannot keep its mode", errno);
  }
  return ok();
}

struct Draft {
  std::string path;
  Fd file;
};

// Beside its target, and nobody else's: not the one that a killed process with our pid left, nor
// what a stranger put there.
Result<Draft> make_draft(const std::string& target, unsigned mode) {
  constexpr int kAttempts = 100;
  for (int attempt = 1;; ++attempt) {
    std::string path = fmt::format("{}.{}-{}.new", target, ::getpid(), attempt);
    auto file = open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (file) {
      return Draft{std::move(path), std::move(*file)};
    }
    if (file.error().sys_errno != EEXIST || attempt == kAttempts) {
      return file.error();
    }
  }
}

Status write_in_place(const std::string& path, std::string_view text) {
  const auto file = open_file(path, O_WRONLY);
  return file ? write_all(file->get(), text) : Status(file.error());
}

Status replace(const std::string& path, std::string_view text) {
  TIDEMARK_TRY_ASSIGN(const auto target, follow_own_links(path));
  struct stat old {};
  const bool is_there = ::lstat(target.c_str(), &old) == 0;
  TIDEMARK_TRY_ASSIGN(const auto draft, make_draft(target, is_there ? 0600 : 0666));
  Status written = write_all(draft.file.get(), text);
  if (written && is_there) {
    written = copy_rights(old, draft.file.get());
  }
  // Else a crash of the machine may leave a name without content.
  if (written && ::fsync(draft.file.get()) != 0) {
    written = system_error("cannot write it out", errno);
  }
  if (written && std::rename(draft.path.c_str(), target.c_str()) != 0) {
    written = system_error("cannot put it in its place", errno);
  }
  if (!written) {
    ::unlink(draft.path.c_str());
  }
  return written;
}

}  // namespace

Result<std::string> follow_own_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::string at = path;
  for (int i = 0; i < kMostLinks; ++i) {
    struct stat status {};
    if (::lstat(at.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) {
      return at;
    }
    if (status.st_uid != ::geteuid() && status.st_uid != 0) {
      return Error{Errc::kPermission,
                   fmt::format("{} is a link of another user (uid {}), which is not followed", at,
                               status.st_uid),
                   ELOOP};
    }
    const auto next = read_link_at(AT_FDCWD, at);
    if (!next) {
      return next.error();
    }
    at = next->starts_with('/') ? *next : folder_of(at) + '/' + *next;
  }
  return Error{Errc::kUsage, fmt::format("{}: too many links", path), ELOOP};
}

Status write_file_atomically(const std::string& path, std::string_view text) {
  const FileSizeSignalBlock no_signal;
  Status written = is_special(path) ? write_in_place(path, text) : replace(path, text);
  if (!written) {
    const Error& error = written.error();
    return Error{error.code, fmt::format("{}: {}", path, error.what), error.sys_errno};
  }
  return written;
}

Status can_write_file(const std::string& path) {
  TIDEMARK_TRY_ASSIGN(const auto target, follow_own_links(path));
  struct stat status {};
  if (::stat(target.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return Error{Errc::kUsage, fmt::format("cannot write {}: it is a folder", path)};
  }
  const bool writes_in_place = is_special(target);
  if (::access(writes_in_place ? target.c_str() : folder_of(target).c_str(), W_OK) != 0) {
    return system_error(fmt::format("cannot write {}", path), errno);
  }
  return ok();
}

}  // namespace tidemark
