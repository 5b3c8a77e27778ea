// SPDX-License-Identifier: Apache-2.0
#include "monitor/tree_ending.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/fd.h"
#include "monitor/process_handle.h"

namespace tidemark::monitor {
namespace {

// Whoever was born while we killed the others is found by the next look.
constexpr std::int64_t kAgainNs = kNsPerSecond / 10;

}  // namespace

void signal_process(const ProcessKey& key, int number) {
  // Without the wrappers of glibc: those of 2.36 cannot be linked from C++.
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, key.pid, 0)));
  const auto now = process_key_of("/proc", key.pid);
  // The descriptor is of whoever has the pid now; that one may be a stranger.
  if (process && now && *now == key) {
    // Gone by now: just as well.
    (void)::syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0);
  }
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

}  // namespace tidemark::monitor
