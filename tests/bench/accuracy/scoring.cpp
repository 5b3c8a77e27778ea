// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/scoring.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "tracker/curve/judge.h"

namespace tidemark::bench {
namespace {

using tracker::Verdict;

constexpr std::size_t kManyPoints = 300;

template <typename Condition>
std::size_t count_if(const std::vector<Outcome>& outcomes, Condition condition) {
  return static_cast<std::size_t>(std::count_if(outcomes.begin(), outcomes.end(), condition));
}

double percent(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// printed / allowed of those that printed a size, sorted.
template <typename Condition>
std::vector<double> print_ratios(const std::vector<Outcome>& outcomes, Condition condition) {
  std::vector<double> ratios;
  for (const Outcome& outcome : outcomes) {
    if (outcome.printed && condition(outcome)) {
      ratios.push_back(*outcome.printed / outcome.allowed_print);
    }
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

double share_within(const std::vector<double>& sorted, double low, double high) {
  const auto from = std::lower_bound(sorted.begin(), sorted.end(), low);
  const auto to = std::upper_bound(sorted.begin(), sorted.end(), high);
  return percent(static_cast<std::size_t>(std::max<std::ptrdiff_t>(to - from, 0)), sorted.size());
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted.empty()
             ? 0.0
             : sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
}

struct ConfidenceBin {
  double low = 0.0;
  double high = 0.0;
  std::size_t verdicts = 0;
  double mean = 0.0;   // confidence
  double right = 0.0;  // share
};

// The bins that hold a verdict. `growing` claims nothing that could be right or wrong.
std::vector<ConfidenceBin> confidence_bins(const std::vector<Outcome>& outcomes) {
  constexpr std::array<double, 9> kEdges = {0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.01};
  std::vector<ConfidenceBin> bins;
  for (std::size_t i = 0; i + 1 < kEdges.size(); ++i) {
    ConfidenceBin bin{kEdges[i], kEdges[i + 1]};
    for (const Outcome& o : outcomes) {
      if (o.verdict != Verdict::kGrowing && o.confidence >= bin.low && o.confidence < bin.high) {
        ++bin.verdicts;
        bin.mean += o.confidence;
        bin.right += o.right ? 1.0 : 0.0;
      }
    }
    if (bin.verdicts > 0) {
      bin.mean /= static_cast<double>(bin.verdicts);
      bin.right /= static_cast<double>(bin.verdicts);
      bins.push_back(bin);
    }
  }
  return bins;
}

// Mean distance between what was claimed and what was right.
double calibration_error(const std::vector<Outcome>& outcomes) {
  double sum = 0.0;
  std::size_t verdicts = 0;
  for (const ConfidenceBin& bin : confidence_bins(outcomes)) {
    sum += std::abs(bin.mean - bin.right) * static_cast<double>(bin.verdicts);
    verdicts += bin.verdicts;
  }
  return verdicts == 0 ? 0.0 : sum / static_cast<double>(verdicts);
}

void print_indices(const char* what, const std::vector<Outcome>& outcomes,
                   bool (Outcome::*condition)() const) {
  constexpr std::size_t kMost = 40;
  std::size_t shown = 0;
  fmt::print(stderr, "{}:", what);
  for (const Outcome& outcome : outcomes) {
    if ((outcome.*condition)() && shown++ < kMost) {
      fmt::print(stderr, " {}({})", outcome.index, family_name(outcome.family));
    }
  }
  fmt::print(stderr, "{}\n", shown > kMost ? fmt::format(" and {} more", shown - kMost) : "");
}

}  // namespace

Outcome judge_generated(const Curve& curve, std::uint64_t index) {
  const tracker::SeriesVerdict reading = tracker::judge(series_of(curve), options_of(curve));
  Outcome outcome;
  outcome.index = index;
  outcome.family = curve.family;
  outcome.points = curve.points.size();
  outcome.correlation = curve.recipe.noise.correlation;
  outcome.leaks = curve.truth.leaks;
  outcome.due = curve.truth.due;
  outcome.weak = curve.truth.weak;
  outcome.right = curve.truth.right.has(reading.verdict);
  outcome.verdict = reading.verdict;
  outcome.confidence = reading.confidence;
  outcome.rate = curve.truth.rate;
  outcome.whole_window = curve.truth.onset <= curve.allowance_end;
  outcome.printed = curve.axis == tracker::Axis::kSteps ? reading.smallest_detectable_per_step
                                                        : reading.smallest_detectable_per_s;
  outcome.allowed_print = std::max(curve.truth.bound.rate, curve.truth.gate);
  return outcome;
}

void Bars::add(std::string what, double value, const std::string& bar, bool met,
               std::string detail) {
  missed_ += met ? 0U : 1U;
  rows_.push_back(fmt::format("| {} | {:.3g} | {} | {} | {} |", what, value, bar,
                              met ? "met" : "**MISSED**", detail));
}

void Bars::at_most(std::string what, double value, double bar, std::string detail) {
  add(std::move(what), value, fmt::format("<= {:g}", bar), value <= bar, std::move(detail));
}

void Bars::at_least(std::string what, double value, double bar, std::string detail) {
  add(std::move(what), value, fmt::format(">= {:g}", bar), value >= bar, std::move(detail));
}

void Bars::print() const {
  fmt::print("\n| bar | measured | must be | | |\n| --- | ---: | ---: | --- | --- |\n");
  for (const std::string& row : rows_) {
    fmt::print("{}\n", row);
  }
}

void print_families(const std::vector<Outcome>& outcomes) {
  fmt::print(
      "\n| family | curves | leak | growing | spikes | warmup | stable | right % | false alarms | "
      "leaks due | missed |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (std::size_t i = 0; i < kFamilyCount; ++i) {
    std::vector<Outcome> own;
    std::copy_if(outcomes.begin(), outcomes.end(), std::back_inserter(own),
                 [&](const Outcome& o) { return o.family == static_cast<Family>(i); });
    if (own.empty()) {
      continue;
    }
    fmt::print("| {} | {} |", family_name(static_cast<Family>(i)), own.size());
    for (const Verdict verdict : {Verdict::kLeak, Verdict::kGrowing, Verdict::kSpikes,
                                  Verdict::kWarmup, Verdict::kStable}) {
      fmt::print(" {} |", count_if(own, [&](const Outcome& o) { return o.verdict == verdict; }));
    }
    fmt::print(" {:.1f} | {} | {} | {} |\n",
               percent(count_if(own, [](const Outcome& o) { return o.right; }), own.size()),
               count_if(own, [](const Outcome& o) { return o.false_alarm(); }),
               count_if(own, [](const Outcome& o) { return o.due; }),
               count_if(own, [](const Outcome& o) { return o.missed(); }));
  }
}

// What short curves and correlated noise do to the answer.
void print_conditions(const std::vector<Outcome>& outcomes) {
  fmt::print(
      "\n| condition | no leak | false alarms | leaks due | missed | `growing` |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: |\n");
  const auto row = [&](const char* name, auto condition) {
    const auto count = [&](auto what) {
      return count_if(outcomes, [&](const Outcome& o) { return condition(o) && what(o); });
    };
    fmt::print("| {} | {} | {} | {} | {} | {} |\n", name,
               count([](const Outcome& o) { return !o.leaks; }),
               count([](const Outcome& o) { return o.false_alarm(); }),
               count([](const Outcome& o) { return o.due; }),
               count([](const Outcome& o) { return o.missed(); }),
               count([](const Outcome& o) { return o.verdict == Verdict::kGrowing; }));
  };
  row("30 to 99 points", [](const Outcome& o) { return o.points < 100; });
  row("100 to 299 points",
      [](const Outcome& o) { return o.points >= 100 && o.points < kManyPoints; });
  row("300 to 3,000 points", [](const Outcome& o) { return o.points >= kManyPoints; });
  row("white noise", [](const Outcome& o) { return o.correlation == 0.0; });
  row("correlation up to 0.5",
      [](const Outcome& o) { return o.correlation > 0.0 && o.correlation <= 0.5; });
  row("correlation 0.5 to 0.9", [](const Outcome& o) { return o.correlation > 0.5; });
}

void print_calibration(const std::vector<Outcome>& outcomes) {
  fmt::print(
      "\n| confidence | verdicts | mean confidence | share right |\n"
      "| --- | ---: | ---: | ---: |\n");
  for (const ConfidenceBin& bin : confidence_bins(outcomes)) {
    fmt::print("| {:.2f} to {:.2f} | {} | {:.3f} | {:.3f} |\n", bin.low, std::min(bin.high, 1.0),
               bin.verdicts, bin.mean, bin.right);
  }
}

void print_detectable(const std::vector<Outcome>& outcomes) {
  fmt::print(
      "\n| printed size / larger of bound and gate | printed | 10 % | median | 90 % | "
      "share <= 2 | share 0.5 to 2 |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  const auto row = [&](const char* name, auto condition) {
    const std::vector<double> ratios = print_ratios(outcomes, condition);
    fmt::print("| {} | {} of {} | {:.2f} | {:.2f} | {:.2f} | {:.1f} % | {:.1f} % |\n", name,
               ratios.size(), count_if(outcomes, condition), quantile(ratios, 0.1),
               quantile(ratios, 0.5), quantile(ratios, 0.9), share_within(ratios, 0.0, 2.0),
               share_within(ratios, 0.5, 2.0));
  };
  row("no leak, under 100 points", [](const Outcome& o) { return !o.leaks && o.points < 100; });
  row("no leak, 100 to 299 points",
      [](const Outcome& o) { return !o.leaks && o.points >= 100 && o.points < kManyPoints; });
  row("no leak, 300 points or more",
      [](const Outcome& o) { return !o.leaks && o.points >= kManyPoints; });
  row("leaks", [](const Outcome& o) { return o.leaks; });
}

void add_bars(const std::vector<Outcome>& outcomes, Bars& bars) {
  const std::size_t innocent = count_if(outcomes, [](const Outcome& o) { return !o.leaks; });
  const std::size_t alarms = count_if(outcomes, [](const Outcome& o) { return o.false_alarm(); });
  bars.at_most("false alarms, %", percent(alarms, innocent), 0.5,
               fmt::format("{} of {} curves without a leak", alarms, innocent));
  const std::size_t due = count_if(outcomes, [](const Outcome& o) { return o.due; });
  const std::size_t missed = count_if(outcomes, [](const Outcome& o) { return o.missed(); });
  bars.at_most(
      "missed leaks, %", percent(missed, due), 1.0,
      fmt::format("{} of {} leaks above 5 times the bound and above the gate", missed, due));
  const std::size_t weak = count_if(outcomes, [](const Outcome& o) { return o.weak; });
  const std::size_t missed_weak =
      count_if(outcomes, [](const Outcome& o) { return o.missed_weak(); });
  bars.at_most(
      "missed weak leaks, %", percent(missed_weak, weak), 1.0,
      fmt::format("{} of {} leaks above 3 times the bound and above the gate", missed_weak, weak));
  const std::size_t many =
      count_if(outcomes, [](const Outcome& o) { return o.points >= kManyPoints; });
  const std::size_t growing = count_if(outcomes, [](const Outcome& o) {
    return o.points >= kManyPoints && o.verdict == Verdict::kGrowing;
  });
  bars.at_most("`growing` at 300 points or more, %", percent(growing, many), 10.0,
               fmt::format("{} of {} curves", growing, many));
  const std::vector<double> ratios = print_ratios(outcomes, [](const Outcome&) { return true; });
  bars.at_least("printed size at most 2 times the larger of bound and gate, %",
                share_within(ratios, 0.0, 2.0), 95.0,
                fmt::format("of {} readings with a size; median ratio {:.2f}", ratios.size(),
                            quantile(ratios, 0.5)));
  const std::size_t visible =
      count_if(outcomes, [](const Outcome& o) { return o.should_be_visible(); });
  const std::size_t broken =
      count_if(outcomes, [](const Outcome& o) { return o.broke_its_word(); });
  bars.at_most("leaks above the printed size that were not seen, %", percent(broken, visible), 1.0,
               fmt::format("{} of {}", broken, visible));
  bars.at_most("confidence against share right, mean distance in %",
               100.0 * calibration_error(outcomes), 5.0, "");
}

void print_failures(const std::vector<Outcome>& outcomes) {
  print_indices("false alarms", outcomes, &Outcome::false_alarm);
  print_indices("missed", outcomes, &Outcome::missed);
  print_indices("missed weak leaks", outcomes, &Outcome::missed_weak);
  print_indices("above the printed size and not seen", outcomes, &Outcome::broke_its_word);
}

}  // namespace tidemark::bench
