// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "common/fd.h"
#include "common/result.h"

namespace tidemark {

// The system calls below, replaceable so that tests can inject EINTR, short counts, ENOSPC, ...
struct Syscalls {
  int (*openat)(int dir, const char* path, int flags, unsigned mode);
  ssize_t (*read)(int fd, void* buffer, std::size_t size);
  ssize_t (*pread)(int fd, void* buffer, std::size_t size, off_t offset);
  ssize_t (*write)(int fd, const void* buffer, std::size_t size);
};

// Swaps the table; returns the previous one. Tests only; not thread-safe.
Syscalls replace_syscalls(const Syscalls& table);

// open(2)/openat(2) with O_CLOEXEC; retries EINTR. The error names the path.
Result<Fd> open_file(const std::string& path, int flags, unsigned mode = 0);
Result<Fd> open_at(int dir, const std::string& path, int flags, unsigned mode = 0);

// Reads from `offset` until the buffer is full or the file ends; loops on EINTR and short counts.
Result<std::size_t> pread_full(int fd, std::span<char> buffer, off_t offset = 0);

// One pread(2), retried on EINTR only. For files that the kernel renders as one record (most of
// /proc): they come whole in the first call when the buffer is larger than they are.
Result<std::size_t> pread_once(int fd, std::span<char> buffer, off_t offset = 0);

// Reads a whole file, of which /proc does not tell the size. More than `limit_bytes` is an error.
Result<std::string> read_file(const std::string& path, std::size_t limit_bytes = 16U << 20U);
Result<std::string> read_file_at(int dir, const std::string& path,
                                 std::size_t limit_bytes = 16U << 20U);
// The same on an open descriptor, from its current position to its end.
Result<std::string> read_to_end(int fd, std::size_t limit_bytes = 16U << 20U);

// One read(2) of what is there, retried on EINTR: 0 is the end of the file. For streams.
Result<std::size_t> read_some(int fd, std::span<char> buffer);

// Where a symbolic link points to.
Result<std::string> read_link_at(int dir, const std::string& path);

// Writes everything or says why not; loops on EINTR and short counts, and waits where a descriptor
// in non-blocking mode would not.
Status write_all(int fd, std::string_view text);

// A write may raise a signal whose default action kills the process: SIGPIPE where nobody reads,
// SIGXFSZ beyond the file-size limit (ulimit -f). While one of these lives, the calling thread gets
// the error alone. The signal is directed at the writing thread, so that blocking it there is
// enough and the disposition of the process, which children inherit, stays as it is.
class WriteSignalBlock {
 public:
  explicit WriteSignalBlock(int number);
  ~WriteSignalBlock();
  WriteSignalBlock(const WriteSignalBlock&) = delete;
  WriteSignalBlock& operator=(const WriteSignalBlock&) = delete;

 private:
  sigset_t blocked_{};
  sigset_t previous_{};
  int number_;
};

class FileSizeSignalBlock : public WriteSignalBlock {
 public:
  FileSizeSignalBlock() : WriteSignalBlock(SIGXFSZ) {}
};

}  // namespace tidemark
