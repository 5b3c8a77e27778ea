// SPDX-License-Identifier: Apache-2.0
#include "live/launch/tree_ending.h"

#include <signal.h>

namespace tidemark::live {
namespace {

// Whoever was born while we killed the others is found by the next look.
constexpr std::int64_t kAgainNs = kNsPerSecond / 10;

}  // namespace

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
