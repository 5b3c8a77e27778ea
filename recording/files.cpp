// SPDX-License-Identifier: Apache-2.0
#include "recording/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/atomic_file.h"
#include "common/fd.h"
#include "common/io.h"
#include "common/text.h"

namespace tidemark::recording {
namespace {

// Files that SQLite keeps beside a database. Left over from another one, they would be taken for
// ours.
constexpr std::array<std::string_view, 3> kCompanions{"-wal", "-journal", "-shm"};

Error not_regular(const std::string& path) {
  return Error{Errc::kMalformed, fmt::format("{} is not a regular file: it is not read", path)};
}

}  // namespace

bool file_exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

Status copy_file(const std::string& from, const std::string& to, int flags) {
  TIDEMARK_TRY_ASSIGN(const auto in, open_file(from, O_RDONLY | O_NONBLOCK | flags));
  struct stat info {};
  if (::fstat(in.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return not_regular(from);
  }
  TIDEMARK_TRY_ASSIGN(const auto out, open_file(to, O_WRONLY | O_CREAT | O_EXCL, 0600));
  std::vector<char> buffer(256U << 10U);
  for (auto left = static_cast<std::uint64_t>(info.st_size); left > 0;) {
    const auto n =
        read_some(in.get(), std::span(buffer).first(std::min<std::uint64_t>(left, buffer.size())));
    if (!n) {
      return named(from, n.error());
    }
    if (*n == 0) {
      break;
    }
    left -= *n;
    if (const Status status = write_all(out.get(), {buffer.data(), *n}); !status) {
      return named(to, status.error());
    }
  }
  return ok();
}

Status check_companions(const std::string& path) {
  for (const std::string_view suffix : kCompanions) {
    const std::string beside = path + std::string(suffix);
    struct stat info {};
    if (::lstat(beside.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
      return not_regular(beside);
    }
  }
  return ok();
}

Error named(const std::string& name, const Error& error) {
  return Error{error.code, fmt::format("{}: {}", name, error.what), error.sys_errno};
}

Result<PrivateDir> PrivateDir::create() {
  const char* const temporary = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
  const bool is_set = temporary != nullptr && *temporary != '\0';
  std::string path = fmt::format("{}/tidemark-XXXXXX", is_set ? temporary : "/tmp");
  if (::mkdtemp(path.data()) == nullptr) {
    return system_error(fmt::format("cannot make a temporary directory {}", path), errno);
  }
  return PrivateDir(std::move(path));
}

PrivateDir::PrivateDir(PrivateDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}

PrivateDir::~PrivateDir() {
  if (!path_.empty()) {
    std::error_code ignored;  // a destructor cannot report it
    std::filesystem::remove_all(path_, ignored);
  }
}

namespace {

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
    return ok();  // nothing to replace; any other problem shows when the file is made
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
  // Every connection in WAL mode holds a lock on a byte of this range as long as it is open:
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

Fd lock_folder_of(const std::string& path) {
  constexpr int kAttempts = 100;
  constexpr useconds_t kPauseUs = 20'000;
  const std::string_view folder =
      std::string_view(path).substr(0, path.size() - basename_of(path).size());
  auto opened = open_file(folder.empty() ? "." : std::string(folder), O_RDONLY | O_DIRECTORY);
  if (!opened) {
    return Fd();
  }
  for (int attempt = 0; attempt < kAttempts && ::flock(opened->get(), LOCK_EX | LOCK_NB) != 0 &&
                        (errno == EWOULDBLOCK || errno == EINTR);
       ++attempt) {
    ::usleep(kPauseUs);
  }
  return *std::move(opened);
}

Result<PendingFile> PendingFile::create(const std::string& path, bool replace) {
  if (path.empty() || basename_of(path).empty()) {
    return Error{Errc::kUsage, fmt::format("'{}' is not the name of a file", path)};
  }
  std::string target = path;
  if (replace) {
    TIDEMARK_TRY_ASSIGN(target, follow_own_links(path));
  }
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
    TIDEMARK_TRY(check_replaceable(path_));
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

namespace {

constexpr int kAttempts = 3;

// The header of the write-ahead log; its salts change whenever the log starts anew, and only then
// can the file have got pages that a log copied later does not hold. Empty: there is no log.
// https://www.sqlite.org/walformat.html
std::string log_header(const std::string& path) {
  constexpr std::size_t kHeaderBytes = 32;
  const auto fd = open_file(path + "-wal", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd) {
    return {};
  }
  std::array<char, kHeaderBytes> header{};
  const auto n = pread_full(fd->get(), header);
  return n ? std::string(header.data(), *n) : std::string();
}

// The file first: what is moved into it from the log meanwhile is also in the log.
Status copy_parts(const std::string& path, const std::string& copy) {
  for (const std::string suffix : {"", "-wal", "-journal"}) {
    if (!suffix.empty() && !file_exists(path + suffix)) {
      continue;
    }
    TIDEMARK_TRY(copy_file(path + suffix, copy + suffix, suffix.empty() ? 0 : O_NOFOLLOW));
  }
  return ok();
}

}  // namespace

Result<PrivateDir> copy_run(const std::string& path) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    TIDEMARK_TRY_ASSIGN(auto directory, PrivateDir::create());
    const std::string before = log_header(path);
    const Status status = copy_parts(path, directory.file("run"));
    if (log_header(path) != before) {
      continue;
    }
    if (!status) {
      return status.error();
    }
    return directory;
  }
  return Error{Errc::kIo, fmt::format("{} changes while it is being copied; read it when its "
                                      "recording has ended",
                                      path)};
}

}  // namespace tidemark::recording
