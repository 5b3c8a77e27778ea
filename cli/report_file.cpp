// SPDX-License-Identifier: Apache-2.0
#include "cli/report_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include <fmt/format.h>

#include "common/io.h"
#include "recording/file_size_signal.h"

namespace tidemark::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStdout = "-";

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

mode_t usual_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

Status write_in_place(const std::string& path, std::string_view text) {
  const auto file = open_file(path, O_WRONLY);
  return file ? write_all(file->get(), text) : Status(file.error());
}

}  // namespace

Status write_report_file(const std::string& path, std::string_view text) {
  const recording::FileSizeSignalBlock no_signal;
  if (path == kStdout) {
    return write_all(STDOUT_FILENO, text);
  }
  if (is_special(path)) {
    return write_in_place(path, text);
  }
  const std::string target = target_of(path);
  std::string temporary = target + ".XXXXXX";
  Fd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) {
    return system_error(fmt::format("cannot write {}", path), errno);
  }
  Status written = write_all(file.get(), text);
  if (written && (::fchmod(file.get(), usual_mode()) != 0 ||
                  ::rename(temporary.c_str(), target.c_str()) != 0)) {
    written = system_error("cannot put it in its place", errno);
  }
  if (!written) {
    ::unlink(temporary.c_str());
    return Error{written.error().code, fmt::format("{}: {}", path, written.error().what),
                 written.error().sys_errno};
  }
  return ok();
}

Status can_write_report(const std::string& path) {
  if (path == kStdout) {
    return ok();
  }
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

}  // namespace tidemark::cli
