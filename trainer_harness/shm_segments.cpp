// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/shm_segments.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include <fmt/format.h>

namespace tidemark::harness {

namespace {

// torch_PID_RANDOM_, as torch names them. The pid alone could be that of another run: an earlier
// job of the same process, or one in another pid namespace that shares /dev/shm.
std::string random_prefix() {
  return fmt::format("torch_{}_{}_", ::getpid(), std::random_device{}());
}

}  // namespace

Result<ShmSegments> ShmSegments::start(bool keep) {
  std::string prefix = random_prefix();
  if (keep) {
    return ShmSegments(std::move(prefix), std::nullopt);
  }
  TIDEMARK_TRY_ASSIGN(
      auto manager, start_helper({"/usr/bin/torch_shm_manager"}, "shm-manager READ_FD " + prefix));
  return ShmSegments(std::move(prefix), std::move(manager));
}

Status ShmSegments::leak_one(std::uint64_t bytes, LeakLines& lines) {
  if (bytes == 0) {
    return ok();
  }
  const std::string name = "/" + prefix_ + std::to_string(count_++);
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
