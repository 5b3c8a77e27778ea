// SPDX-License-Identifier: Apache-2.0
#include "live/launch/ending.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/io.h"

namespace tidemark::live {
namespace {

// A process that was started while the others were killed is found by the next call.
constexpr std::int64_t kAgainNs = kNsPerSecond / 10;

}  // namespace

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

void TreeEnding::act(std::int64_t now_ns, std::span<const ProcessKey> members, const Send& send) {
  if (now_ns < due_ns_) {
    return;
  }
  const bool is_first = stage_ == Stage::kWaiting;
  for (const ProcessKey& key : members) {
    send(key, is_first ? SIGTERM : SIGKILL);
    if (is_first) {
      send(key, SIGCONT);  // who is stopped cannot obey
    }
  }
  if (is_first) {
    stage_ = Stage::kAsked;
  } else if (!members.empty()) {
    stage_ = Stage::kKilling;
  }
  due_ns_ = now_ns + (is_first ? grace_ns_ : kAgainNs);
}

}  // namespace tidemark::live
