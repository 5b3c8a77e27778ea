// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.h"

namespace tidemark::monitor {

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
