// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/clock.h"
#include "common/fd.h"
#include "common/process_key.h"
#include "monitor/procfs/process_signal.h"

namespace tidemark::live {

// Tells processes to stop and knows when they have, up to a time. Not thread-safe.
class StopRequest {
 public:
  // Sends `number`. Who has ended by now, or is not ours to signal, is not waited for.
  StopRequest(std::span<const ProcessKey> processes, int number, std::int64_t end_ns);

  // Those that got it have ended, or the time is over.
  bool is_over(std::int64_t now_ns);
  std::int64_t end_ns() const { return end_ns_; }
  // Readable when is_over() may have another answer; -1: only time tells, or a kernel before 5.3.
  int fd() const { return waited_.empty() ? -1 : waited_.front().handle.get(); }

 private:
  struct Waited {
    ProcessKey key;
    Fd handle;
  };
  Fd proc_;
  std::vector<Waited> waited_;
  std::int64_t end_ns_;
};

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
