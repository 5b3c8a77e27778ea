// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/accuracy/generator.h"

namespace tidemark::bench {

// One judged curve, and what it should have been.
struct Outcome {
  std::uint64_t index = 0;
  Family family = Family::kStable;
  std::size_t points = 0;
  double correlation = 0.0;  // of the noise
  bool leaks = false;
  bool due = false;
  bool weak = false;
  bool right = false;
  tracker::Verdict verdict = tracker::Verdict::kStable;
  double confidence = 0.0;
  double rate = 0.0;
  bool whole_window = false;  // leaks since the allowance ended, or longer
  // The smallest leak that the reading says it would have seen, per axis unit; and what it may say.
  std::optional<double> printed;
  double allowed_print = 0.0;  // the larger of bound and gate

  bool false_alarm() const { return !leaks && verdict == tracker::Verdict::kLeak; }
  // `growing` is neither a miss nor a false alarm.
  bool silent() const {
    return verdict != tracker::Verdict::kLeak && verdict != tracker::Verdict::kGrowing;
  }
  bool missed() const { return due && silent(); }
  bool missed_weak() const { return weak && silent(); }
  // A leak above the size that the reading itself calls visible.
  bool should_be_visible() const { return leaks && whole_window && printed && rate > *printed; }
  bool broke_its_word() const { return should_be_visible() && silent(); }
};

Outcome judge_generated(const Curve& curve, std::uint64_t index);

// Bars, collected while the tables are printed.
class Bars {
 public:
  // `bar` is the largest value that is good.
  void at_most(std::string what, double value, double bar, std::string detail);
  void at_least(std::string what, double value, double bar, std::string detail);
  void print() const;  // a Markdown table
  bool all_met() const { return missed_ == 0; }

 private:
  void add(std::string what, double value, const std::string& bar, bool met, std::string detail);

  std::vector<std::string> rows_;
  std::size_t missed_ = 0;
};

void print_families(const std::vector<Outcome>& outcomes);
void print_conditions(const std::vector<Outcome>& outcomes);
void print_calibration(const std::vector<Outcome>& outcomes);
void print_detectable(const std::vector<Outcome>& outcomes);
void add_bars(const std::vector<Outcome>& outcomes, Bars& bars);
// Where to look with --dump; on stderr.
void print_failures(const std::vector<Outcome>& outcomes);

}  // namespace tidemark::bench
