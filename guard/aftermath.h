// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/process_key.h"

namespace tidemark::guard {

// Whether a command counts as stopped by the guard. A script may go on by itself after its trainer
// was stopped: once another one trains, how the command ends is its own affair. Pure.
class GuardAftermath {
 public:
  // The guard has stopped or killed; `members` were in the tree at that time.
  void acted(std::span<const ProcessKey> members);
  // What got the signal has ended.
  void stood_down();
  // One tick: who is recognised as a trainer, and the last step so far.
  void see(std::span<const ProcessKey> trainers, std::optional<std::int64_t> step);

  bool is_stopped() const { return is_stopped_; }

 private:
  bool is_stopped_ = false;
  std::vector<ProcessKey> members_;  // at the time of the stop: orphans of a trainer look like one
  std::optional<std::uint32_t> ticks_;  // since it stood down
  std::optional<std::int64_t> step_;    // of those that have ended
};

}  // namespace tidemark::guard
