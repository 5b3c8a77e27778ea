// SPDX-License-Identifier: Apache-2.0
#include "live/launch/stop_request.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/io.h"
#include "monitor/procfs/process_signal.h"

namespace tidemark::live {

StopRequest::StopRequest(std::span<const ProcessKey> processes, int number, std::int64_t end_ns)
    : end_ns_(end_ns) {
  auto proc = open_file("/proc", O_RDONLY | O_DIRECTORY);
  if (!proc) {
    return;
  }
  proc_ = *std::move(proc);
  for (const ProcessKey& key : processes) {
    Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, key.pid, 0)));
    if (monitor::signal_process(proc_.get(), key, number) == 0) {
      waited_.push_back({key, std::move(handle)});
    }
  }
}

bool StopRequest::is_over(std::int64_t now_ns) {
  std::erase_if(
      waited_, [&](const Waited& waited) { return !monitor::is_running(proc_.get(), waited.key); });
  return waited_.empty() || now_ns >= end_ns_;
}

}  // namespace tidemark::live
