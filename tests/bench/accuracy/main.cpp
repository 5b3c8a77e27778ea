// SPDX-License-Identifier: Apache-2.0
// usage: accuracy_bench [--seed S] [--count N] [--family NAME] [--only PART]
//                       [--dump INDEX [--cut POINTS]]
//   Judges curves with a known truth and prints the tables of docs/accuracy.md; exits with 1 when a
//   bar is missed. Seed 1 is for tuning, seed 2, the default, for reporting.
//   PART       generated, prefixes, looks, real or advice
//   --dump     prints one generated curve as CSV, and its truth and reading in words on stderr;
//   with
//              --only prefixes or looks a run of that part
//   --cut      only its first points
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tests/bench/accuracy/advice_grade.h"
#include "tests/bench/accuracy/comparison.h"
#include "tests/bench/accuracy/dump.h"
#include "tests/bench/accuracy/generator.h"
#include "tests/bench/accuracy/looks.h"
#include "tests/bench/accuracy/prefixes.h"
#include "tests/bench/accuracy/real_curves.h"
#include "tests/bench/accuracy/scoring.h"

namespace tidemark::bench {
namespace {

constexpr std::array<std::string_view, 5> kParts = {"generated", "prefixes", "looks", "real",
                                                    "advice"};
constexpr std::uint64_t kSettlingRuns = 600;
constexpr std::uint64_t kLooks = 2'000;
constexpr std::uint64_t kAdvised = 4'000;

struct Arguments {
  std::uint64_t seed = 2;
  std::uint64_t count = 10'000;
  std::optional<Family> family;
  std::optional<std::uint64_t> dump;
  std::optional<std::uint64_t> cut;
  std::string_view only;

  bool wants(std::string_view part) const { return only.empty() || only == part; }
};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::optional<std::uint64_t> value = number(argv[i + 1]);
    if (name == "--family") {
      arguments.family = family_from_name(argv[i + 1]);
      if (!arguments.family) {
        return std::nullopt;
      }
    } else if (name == "--only") {
      arguments.only = argv[i + 1];
      if (std::find(kParts.begin(), kParts.end(), arguments.only) == kParts.end()) {
        return std::nullopt;
      }
    } else if (name == "--seed" && value) {
      arguments.seed = *value;
    } else if (name == "--count" && value) {
      arguments.count = *value;
    } else if (name == "--dump" && value) {
      arguments.dump = *value;
    } else if (name == "--cut" && value) {
      arguments.cut = *value;
    } else {
      return std::nullopt;
    }
  }
  return argc % 2 == 1 ? std::optional(arguments) : std::nullopt;
}

void judge_generated_curves(const Arguments& arguments, Bars& bars) {
  std::vector<Outcome> outcomes;
  GeneratedComparison comparison;
  for (std::uint64_t index = 0; index < arguments.count; ++index) {
    if (!arguments.family || family_at(index) == *arguments.family) {
      const Curve curve = generate(arguments.seed, index);
      outcomes.push_back(judge_generated(curve, index));
      comparison.add(curve, outcomes.back());
    }
  }
  fmt::print("Seed {}, {} generated curves.\n", arguments.seed, outcomes.size());
  print_families(outcomes);
  print_conditions(outcomes);
  print_calibration(outcomes);
  print_detectable(outcomes);
  comparison.print();
  add_bars(outcomes, bars);
  print_failures(outcomes);
}

bool judge_measured_curves(const Arguments& arguments, Bars& bars) {
  const auto curves =
      load_real_curves(TIDEMARK_SOURCE_DIR "/tests/fixtures/series/real_series.json");
  if (!curves) {
    fmt::print(stderr, "accuracy_bench: {}\n", curves.error().what);
    return false;
  }
  if (arguments.wants("real")) {
    judge_real_curves(*curves, bars);
    compare_on_real_curves(*curves);
  }
  if (arguments.wants("advice")) {
    grade_advice(arguments.seed, std::min(arguments.count, kAdvised), *curves, bars);
  }
  return true;
}

int run(const Arguments& arguments) {
  if (arguments.dump && arguments.only == "looks") {
    const Look look = generate_look(arguments.seed, *arguments.dump);
    dump(look_name(look_at(*arguments.dump)), look.curve, look.options,
         arguments.cut.value_or(look.curve.points.size()));
    return 0;
  }
  if (arguments.dump) {
    const bool settling = arguments.only == "prefixes";
    const Curve curve = settling ? generate_settling(arguments.seed, *arguments.dump)
                                 : generate(arguments.seed, *arguments.dump);
    dump(settling ? settling_name(settling_at(*arguments.dump)) : family_name(curve.family), curve,
         settling ? tracker::Options() : options_of(curve),
         arguments.cut.value_or(curve.points.size()));
    return 0;
  }
  Bars bars;
  if (arguments.wants("generated")) {
    judge_generated_curves(arguments, bars);
  }
  if (arguments.wants("prefixes")) {
    judge_prefixes(arguments.seed, std::min(arguments.count, kSettlingRuns), bars);
  }
  if (arguments.wants("looks")) {
    judge_looks(arguments.seed, std::min(arguments.count, kLooks), bars);
  }
  if ((arguments.wants("real") || arguments.wants("advice")) &&
      !judge_measured_curves(arguments, bars)) {
    return 3;
  }
  bars.print();
  return bars.all_met() ? 0 : 1;
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  const auto arguments = tidemark::bench::parse(argc, argv);
  if (!arguments) {
    fmt::print(stderr,
               "usage: accuracy_bench [--seed S] [--count N] [--family NAME] [--only "
               "generated|prefixes|looks|real|advice] [--dump INDEX [--cut POINTS]]\n");
    return 2;
  }
  return tidemark::bench::run(*arguments);
}
