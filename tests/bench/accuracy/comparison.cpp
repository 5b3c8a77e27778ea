// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/comparison.h"

#include <span>
#include <string>

#include <fmt/format.h>

#include "tracker/curve/judge.h"

namespace tidemark::bench {
namespace {

using tracker::Verdict;

void print_head(std::string_view what) {
  fmt::print(
      "\n| {} | leaks found | missed | undecided | false alarms | rightly quiet |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: |\n",
      what);
}

}  // namespace

void LeakTally::add(bool leaks, bool alarms) {
  ++(leaks ? (alarms ? found : missed) : (alarms ? false_alarms : quiet));
}

void LeakTally::add(bool leaks, Verdict verdict) {
  if (leaks && verdict == Verdict::kGrowing) {
    ++undecided;
  } else {
    add(leaks, verdict == Verdict::kLeak);
  }
}

void LeakTally::print(std::string_view name) const {
  fmt::print("| {} | {} | {} | {} | {} | {} |\n", name, found, missed, undecided, false_alarms,
             quiet);
}

void GeneratedComparison::add(const Curve& curve, const Outcome& outcome) {
  if (curve.truth.leaks && !curve.truth.due) {
    return;
  }
  std::vector<double> xs;
  std::vector<double> rss;
  std::vector<double> footprint;
  std::size_t inside = 0;  // the allowance
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    xs.push_back(curve.x(i));
    rss.push_back(curve.points[i].rss_bytes);
    footprint.push_back(curve.points[i].footprint_bytes);
    inside += curve.x(i) < curve.allowance_end ? 1U : 0U;
  }
  tracker_.add(curve.truth.leaks, outcome.verdict);
  for (std::size_t i = 0; i < kSimpleRules.size(); ++i) {
    rss_[i].add(curve.truth.leaks, kSimpleRules[i].alarms(xs, rss));
    footprint_[i].add(curve.truth.leaks,
                      kSimpleRules[i].alarms(std::span(xs).subspan(inside),
                                             std::span(footprint).subspan(inside)));
  }
}

void GeneratedComparison::print() const {
  print_head("generated curves");
  tracker_.print("tidemark");
  for (std::size_t i = 0; i < kSimpleRules.size(); ++i) {
    rss_[i].print(fmt::format("{}; RSS", kSimpleRules[i].name));
  }
  for (std::size_t i = 0; i < kSimpleRules.size(); ++i) {
    footprint_[i].print(fmt::format("{}; footprint after the allowance", kSimpleRules[i].name));
  }
}

void compare_on_real_curves(const std::vector<RealCurve>& curves) {
  LeakTally ours;
  LeakTally with_warmup;
  std::array<LeakTally, kSimpleRules.size()> rules;
  for (const RealCurve& curve : curves) {
    const auto options = explicit_warmup(curve);
    if (!options) {
      continue;
    }
    const tracker::Series series = series_of(curve, curve.xs.size());
    ours.add(curve.leaks(), tracker::judge(series, tracker::Options{}).verdict);
    with_warmup.add(curve.leaks(), tracker::judge(series, *options).verdict);
    for (std::size_t i = 0; i < kSimpleRules.size(); ++i) {
      rules[i].add(curve.leaks(), kSimpleRules[i].alarms(curve.xs, curve.bytes));
    }
  }
  print_head("real curves of 6 points or more");
  ours.print("tidemark");
  with_warmup.print("tidemark, `--warmup` at 40 % of the points");
  for (std::size_t i = 0; i < kSimpleRules.size(); ++i) {
    rules[i].print(kSimpleRules[i].name);
  }
}

}  // namespace tidemark::bench
