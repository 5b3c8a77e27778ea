// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/bench/accuracy/generator.h"
#include "tests/bench/accuracy/real_curves.h"
#include "tests/bench/accuracy/scoring.h"
#include "tests/bench/accuracy/simple_rules.h"

namespace tidemark::bench {

// How often a rule was right about "does it leak?".
struct LeakTally {
  std::uint64_t found = 0;
  std::uint64_t missed = 0;
  std::uint64_t undecided = 0;  // a leak that was called `growing`
  std::uint64_t false_alarms = 0;
  std::uint64_t quiet = 0;  // no leak, no alarm

  void add(bool leaks, bool alarms);
  void add(bool leaks, tracker::Verdict verdict);
  void print(std::string_view name) const;
};

// The tracker beside the simple rules, on generated curves. Leaks that are too small to be due are
// left out. The rules get RSS of the whole run, as scripts do; and again, better than most scripts,
// what the tracker gets: the footprint after the allowance.
class GeneratedComparison {
 public:
  void add(const Curve& curve, const Outcome& outcome);
  void print() const;

 private:
  LeakTally tracker_;
  std::array<LeakTally, kSimpleRules.size()> rss_;
  std::array<LeakTally, kSimpleRules.size()> footprint_;
};

// The same on the real curves of 6 points or more.
void compare_on_real_curves(const std::vector<RealCurve>& curves);

}  // namespace tidemark::bench
