// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/remote_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "common/io.h"
#include "profiler/inject/traced_thread.h"

namespace tidemark::inject {
namespace {

constexpr std::uint64_t kEndOfUserSpace = std::uint64_t{1} << 47U;

}  // namespace

Result<RemoteMemory> RemoteMemory::open(pid_t pid) {
  auto file = open_file(fmt::format("/proc/{}/mem", pid), O_RDWR);
  // A first thread that has exited before the others has none.
  for (const pid_t tid : file ? std::vector<pid_t>() : threads_of(pid)) {
    if (!file && file.error().sys_errno == ESRCH) {
      file = open_file(fmt::format("/proc/{}/task/{}/mem", pid, tid), O_RDWR);
    }
  }
  return file ? Result<RemoteMemory>(over(*std::move(file))) : file.error();
}

bool RemoteMemory::read(std::uint64_t address, std::span<char> into) const {
  if (address >= kEndOfUserSpace || into.size() > kEndOfUserSpace - address) {
    return false;
  }
  const auto count = pread_full(file_.get(), into, static_cast<off_t>(address));
  return count && *count == into.size();
}

bool RemoteMemory::can_read_end_of(std::uint64_t address, std::size_t count,
                                   std::size_t item_bytes) const {
  char last = 0;
  return count <= kEndOfUserSpace / item_bytes &&
         (count == 0 || read(address + count * item_bytes - 1, {&last, 1}));
}

std::string RemoteMemory::text(std::uint64_t address, std::size_t most_bytes) const {
  constexpr std::size_t kPiece = 64;  // of which none crosses a page
  std::string text;
  while (text.size() < most_bytes) {
    char piece[kPiece];
    const std::size_t bytes = std::min(kPiece - address % kPiece, most_bytes - text.size());
    if (!read(address, {piece, bytes})) {
      break;
    }
    const char* const end = std::find(piece, piece + bytes, '\0');
    text.append(piece, static_cast<std::size_t>(end - piece));
    if (end != piece + bytes) {
      break;
    }
    address += bytes;
  }
  return text;
}

Status RemoteMemory::write(std::uint64_t address, std::span<const char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(address));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return system_error("cannot write to the memory of the process", count < 0 ? errno : EFAULT);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    address += static_cast<std::uint64_t>(count);
  }
  return ok();
}

}  // namespace tidemark::inject
