// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tidemark::monitor {

enum class StatusRead {
  kAlways,     // one of few: statm is never looked at
  kInTurn,     // one of many, and it is its turn
  kIfChanged,  // one of many: only when statm differs from what it was before the last reading
};

// Whose status is read at a tick. In a tree of up to `per_tick` processes everybody's. In a larger
// one that would cost too much (about 14 us each): `per_tick` of them, in turns, and the others
// when their statm has changed, which is a tenth of the price. What statm does not tell may then be
// known late, by as many ticks as a round of turns has: a new name or parent, the peak, the number
// of threads, a state other than zombie, and swap or shared memory that changed while statm's sums
// stayed. Pure.
class StatusPlan {
 public:
  explicit StatusPlan(std::size_t per_tick) : per_tick_(per_tick) {}

  // Of a tick that looks at this many processes; they are known by their position.
  void begin_tick(std::size_t processes);
  StatusRead of(std::size_t position) const;
  // For a second look within the tick.
  StatusRead again() const;
  // Those behind it move up.
  void removed(std::size_t position);

 private:
  bool takes_turns() const { return processes_ > per_tick_; }

  std::size_t per_tick_;
  std::size_t processes_ = 0;
  std::size_t first_ = 0;  // who begins at this tick
  std::size_t next_ = 0;   // who begins at the next one
};

}  // namespace tidemark::monitor
