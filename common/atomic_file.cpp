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

// With symbolic links resolved: the link stays, what it points to is replaced.
std::string target_of(const std::string& path) {
  std::error_code error;
  const fs::path resolved = fs::weakly_canonical(path, error);
  return error ? path : resolved.string();
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

struct Draft {
  std::string path;
  Fd file;
};

// Beside its target, and nobody else's: not the one that a killed process with our pid left, nor
// what a stranger put there.
Result<Draft> make_draft(const std::string& target) {
  constexpr int kAttempts = 100;
  for (int attempt = 1;; ++attempt) {
    std::string path = fmt::format("{}.{}-{}.new", target, ::getpid(), attempt);
    auto file = open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
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
  const std::string target = target_of(path);
  TIDEMARK_TRY_ASSIGN(const auto draft, make_draft(target));
  Status written = write_all(draft.file.get(), text);
  if (written && std::rename(draft.path.c_str(), target.c_str()) != 0) {
    written = system_error("cannot put it in its place", errno);
  }
  if (!written) {
    ::unlink(draft.path.c_str());
  }
  return written;
}

}  // namespace

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
  const std::string target = target_of(path);
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
