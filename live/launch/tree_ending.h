// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "common/clock.h"
#include "common/process_key.h"
#include "monitor/procfs/process_signal.h"

namespace tidemark::live {

// Ends a process tree when its time is over: SIGTERM for everybody, and SIGKILL for whoever is left
// after the grace time, as often as it takes. Whoever has the tree calls act() when it is due, with
// those that are left. Not thread-safe.
class TreeEnding {
 public:
  static constexpr std::int64_t kGraceNs = 5 * kNsPerSecond;

  explicit TreeEnding(std::int64_t due_ns, std::int64_t grace_ns = kGraceNs)
      : due_ns_(due_ns), grace_ns_(grace_ns) {}

  // When something is to be done next.
  std::int64_t due_ns() const { return due_ns_; }
  bool has_begun() const { return stage_ != Stage::kWaiting; }
  bool had_to_kill() const { return stage_ == Stage::kKilling; }

  using Send = std::function<void(const ProcessKey& key, int number)>;
  // Does nothing before it is due.
  void act(std::int64_t now_ns, std::span<const ProcessKey> members,
           const Send& send = monitor::send_signal);

 private:
  enum class Stage { kWaiting, kAsked, kKilling };

  std::int64_t due_ns_;
  std::int64_t grace_ns_;
  Stage stage_ = Stage::kWaiting;
};

}  // namespace tidemark::live
