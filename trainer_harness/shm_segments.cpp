// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/shm_segments.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trainer_harness/source_line.h"

namespace tidemark::harness {

std::string shm_prefix(pid_t pid) { return "torch_" + std::to_string(pid) + "_"; }

Result<ShmSegments> ShmSegments::start(bool keep) {
  if (keep) {
    return ShmSegments(std::nullopt);
  }
  auto manager =
      start_helper({"/usr/bin/torch_shm_manager"}, "shm-manager READ_FD " + shm_prefix(::getpid()));
  if (!manager) {
    return manager.error();
  }
  return ShmSegments(std::move(*manager));
}

Status ShmSegments::leave_one(std::uint64_t bytes, LeakLines& lines) {
  const std::string name = "/" + shm_prefix(::getpid()) + std::to_string(++count_);
  const Fd segment(
      noted(lines.retaining, ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)));
  if (!segment) {
    return system_error("/dev/shm" + name, errno);
  }
  // Not ftruncate: touching a hole of a full file system is SIGBUS.
  const auto size = static_cast<off_t>(bytes);
  const int error = noted(lines.allocating, ::posix_fallocate(segment.get(), 0, size));
  if (error != 0) {
    return system_error("/dev/shm" + name, error);
  }
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.get(), 0);
  if (memory == MAP_FAILED) {
    return system_error("/dev/shm" + name, errno);
  }
  std::memset(memory, 0x5A, bytes);
  ::munmap(memory, bytes);
  return ok();
}

std::optional<pid_t> ShmSegments::manager() const {
  return manager_ ? std::optional(manager_->pid) : std::nullopt;
}

}  // namespace tidemark::harness
