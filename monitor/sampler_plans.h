// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/clock.h"
#include "common/result.h"

namespace tidemark::monitor {

// How to look for new processes at this tick.
enum class Discovery {
  kNothing,   // the kernel has handed out no pid since the last time
  kChildren,  // ask the members for their children: cheap, finds all but what was orphaned at once
  kTable,     // read the whole process table
};

// Decides between them. A process table costs a scan of /proc, so it is read at most every 2 s and
// for at most 1 % of the time; asking for children costs a file per thread, so it is done for at
// most 0.5 % of the time, but every 2 s in any case. Costs are CPU time: waiting for a processor is
// no cost. The kernel's last pid (/proc/loadavg) says when there is nothing to look for. Pure.
class DiscoveryPlan {
 public:
  // `last_pid` is nullopt when it cannot be read: then there may always be something new.
  Discovery next(std::int64_t now_ns, std::optional<std::uint64_t> last_pid);
  void table_read(std::int64_t now_ns, std::int64_t cost_ns);
  // It is still due, but not at once.
  void table_unreadable(std::int64_t now_ns) { next_table_ns_ = now_ns + kTableEveryNs; }
  void children_read(std::int64_t now_ns, std::int64_t cost_ns);
  // The kernel lists no children (CONFIG_PROC_CHILDREN is off): tables only.
  void children_unsupported() { children_supported_ = false; }

  static constexpr std::int64_t kTableEveryNs = 2 * kNsPerSecond;

 private:
  bool children_supported_ = true;
  std::int64_t next_table_ns_ = 0;
  std::int64_t next_children_ns_ = 0;
  bool table_is_due_ = true;  // pids were handed out since the last table
  bool children_are_due_ = true;
  std::optional<std::uint64_t> last_pid_;
};

enum class StatusRead {
  kAlways,     // one of few: statm is never read
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

  // Of a tick with this many processes; they are known by their position.
  void begin_tick(std::size_t processes);
  StatusRead of(std::size_t position) const;
  // For a second reading within the tick.
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

enum class PssMode {
  kOff,     // never read smaps_rollup
  kAuto,    // within the budget
  kAlways,  // every process at every tick, whatever it costs
};
// "off", "auto", "always".
Result<PssMode> parse_pss_mode(std::string_view text);

// How much time may go into reading smaps_rollup, which holds the target's mmap lock for about
// 13 ms per GiB. Readings are paid afterwards, as nobody knows their price before: a reading is
// allowed while the credit is positive, and an expensive one is worked off before the next. The
// first pass over the tree runs ahead of its credit, for kFirstPassNs at the most; of that a debt
// of kStartDebtNs has to be worked off.
class PssBudget {
 public:
  PssBudget(PssMode mode, double share_of_wall_time);

  bool may_read(std::int64_t now_ns);
  void charge(std::int64_t cost_ns);
  void first_pass_done();

  // A single reading of a process this large is refused in kAuto: it would hold the target's mmap
  // lock for more than a second.
  bool too_large(std::uint64_t rss_bytes) const;
  PssMode mode() const { return mode_; }

  static constexpr std::int64_t kFirstPassNs = 250'000'000;
  static constexpr std::int64_t kStartDebtNs = 100'000'000;

 private:
  PssMode mode_;
  double share_;
  bool first_pass_ = true;
  std::int64_t credit_ns_ = 0;
  std::int64_t last_ns_ = 0;
};

}  // namespace tidemark::monitor
