// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/records.h"

namespace tidemark::recording {

// What waits for the next tick that finds room in the queue: processes that have ended, and the
// lasting facts (new processes, markers, events, losses, what allocates) of ticks that were
// dropped. Samples of processes are taken again, facts happen once, and a site is sampled only when
// it has changed. Bounded: what goes beyond is counted as the loss "facts_dropped".
// Not thread-safe.
class WaitingFacts {
 public:
  explicit WaitingFacts(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  void add_ended(const ProcessRecord& process);
  void add_dropped(const Tick& tick);

  // Puts the facts in front of those of `tick`, and adds the losses. Empties this.
  void move_into(Tick& tick);
  // The last dropped tick, whole and with all facts: for the end of a run, when none follows.
  std::optional<Tick> take_last_dropped();
  std::vector<ProcessRecord> take_ended();

 private:
  bool has_room_for(std::size_t bytes);

  std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::optional<Tick> dropped_;  // the last dropped tick, with the facts of all before it
  std::uint64_t ticks_ = 0;
  std::uint64_t facts_lost_ = 0;
  std::vector<ProcessRecord> ended_;
};

// What a tick takes in memory.
std::size_t approximate_bytes(const Tick& tick);

}  // namespace tidemark::recording
