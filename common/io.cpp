// SPDX-License-Identifier: Apache-2.0
#include "common/io.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <utility>

#include <fmt/format.h>

namespace tidemark {
namespace {

int real_openat(int dir, const char* path, int flags, unsigned mode) {
  return ::openat(dir, path, flags | O_CLOEXEC, mode);
}

constexpr Syscalls kRealSyscalls{&real_openat, &::read, &::pread, &::write};

// The one replaceable seam between us and the kernel; see replace_syscalls().
Syscalls g_syscalls = kRealSyscalls;

Errc code_of(int sys_errno) {
  switch (sys_errno) {
    case ENOENT:
    case ENOTDIR:
      return Errc::kNotFound;
    case ESRCH:
      return Errc::kGone;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::kPermission;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Errc::kNoSpace;
    case ENOSYS:
    case EOPNOTSUPP:
      return Errc::kUnsupported;
    default:
      return Errc::kIo;
  }
}

// Again for as long as a signal interrupts it.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) {
    result = call();
  }
  return result;
}

Result<std::size_t> bytes_read(ssize_t n) {
  return n < 0 ? Result<std::size_t>(system_error("cannot read", errno))
               : static_cast<std::size_t>(n);
}

}  // namespace

Error system_error(std::string what, int sys_errno) {
  what += ": ";
  what += std::strerror(sys_errno);  // NOLINT(concurrency-mt-unsafe): glibc's is thread-safe
  return Error{code_of(sys_errno), std::move(what), sys_errno};
}

Syscalls replace_syscalls(const Syscalls& table) { return std::exchange(g_syscalls, table); }

Result<Fd> open_file(const std::string& path, int flags, unsigned mode) {
  return open_at(AT_FDCWD, path, flags, mode);
}

Result<Fd> open_at(int dir, const std::string& path, int flags, unsigned mode) {
  const int fd = uninterrupted([&] { return g_syscalls.openat(dir, path.c_str(), flags, mode); });
  if (fd < 0) {
    const int error = errno;
    return system_error(fmt::format("cannot open {}", path), error);
  }
  return Fd(fd);
}

Result<std::size_t> pread_full(int fd, std::span<char> buffer, off_t offset) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    TIDEMARK_TRY_ASSIGN(const std::size_t n,
                        pread_once(fd, buffer.subspan(done), offset + static_cast<off_t>(done)));
    if (n == 0) {
      break;
    }
    done += n;
  }
  return done;
}

Result<std::size_t> pread_once(int fd, std::span<char> buffer, off_t offset) {
  return bytes_read(
      uninterrupted([&] { return g_syscalls.pread(fd, buffer.data(), buffer.size(), offset); }));
}

Result<std::string> read_to_end(int fd, std::size_t limit_bytes) {
  std::string text;
  std::size_t size = 0;
  while (true) {
    if (size == text.size()) {
      text.resize(text.empty() ? 4096 : text.size() * 2);
    }
    TIDEMARK_TRY_ASSIGN(const std::size_t n, read_some(fd, std::span(text).subspan(size)));
    if (n == 0) {
      break;
    }
    size += n;
    if (size > limit_bytes) {
      return Error{Errc::kMalformed, fmt::format("larger than {} bytes", limit_bytes)};
    }
  }
  text.resize(size);
  return text;
}

Result<std::string> read_file(const std::string& path, std::size_t limit_bytes) {
  return read_file_at(AT_FDCWD, path, limit_bytes);
}

Result<std::string> read_file_at(int dir, const std::string& path, std::size_t limit_bytes) {
  TIDEMARK_TRY_ASSIGN(auto fd, open_at(dir, path, O_RDONLY));
  auto text = read_to_end(fd.get(), limit_bytes);
  if (!text) {
    Error error = text.error();
    error.what = fmt::format("{}: {}", path, error.what);
    return error;
  }
  return text;
}

Result<std::size_t> read_some(int fd, std::span<char> buffer) {
  return bytes_read(
      uninterrupted([&] { return g_syscalls.read(fd, buffer.data(), buffer.size()); }));
}

Result<std::string> read_link_at(int dir, const std::string& path) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = ::readlinkat(dir, path.c_str(), target.data(), target.size());
  if (size < 0) {
    return system_error(fmt::format("cannot read the link {}", path), errno);
  }
  return std::string(target.data(), static_cast<std::size_t>(size));
}

Status write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = uninterrupted([&] { return g_syscalls.write(fd, text.data(), text.size()); });
    if (n < 0 && errno == EAGAIN) {  // somebody we share it with has made it non-blocking
      pollfd writable{fd, POLLOUT, 0};
      ::poll(&writable, 1, -1);
      continue;
    }
    if (n < 0) {
      return system_error("cannot write", errno);
    }
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return ok();
}

WriteSignalBlock::WriteSignalBlock(int number) : number_(number) {
  sigemptyset(&blocked_);
  sigaddset(&blocked_, number);
  pthread_sigmask(SIG_BLOCK, &blocked_, &previous_);
}

WriteSignalBlock::~WriteSignalBlock() {
  if (sigismember(&previous_, number_) == 1) {
    return;  // the caller had it blocked already: what is pending is the caller's
  }
  const timespec no_wait{};
  sigtimedwait(&blocked_, nullptr, &no_wait);  // takes one that is pending; fails if there is none
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

}  // namespace tidemark
