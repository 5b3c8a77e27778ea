// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/accuracy/real_curves.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/io.h"
#include "recording/import/importers.h"
#include "tracker/curve/judge.h"

namespace tidemark::bench {
namespace {

using tracker::Verdict;

constexpr std::size_t kEnoughPoints = 6;

// The reader of series has no use for the classes.
std::map<std::string, std::string> classes_in(const std::string& text) {
  std::map<std::string, std::string> classes;
  const auto document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_object() && document.contains("series")) {
    for (const auto& series : document["series"]) {
      classes[series.value("id", "")] = series.value("true_class", "");
    }
  }
  return classes;
}

bool rises(const RealCurve& curve) { return curve.bytes.back() > 1.02 * curve.bytes.front(); }

struct Row {
  tracker::SeriesVerdict full;
  std::map<Verdict, std::size_t> prefixes;
  std::optional<Verdict> with_warmup;
};

Row judge_curve(const RealCurve& curve) {
  Row row;
  for (std::size_t count = 1; count < curve.xs.size(); ++count) {
    ++row.prefixes[tracker::judge(series_of(curve, count), tracker::Options{}).verdict];
  }
  row.full = tracker::judge(series_of(curve, curve.xs.size()), tracker::Options{});
  if (const auto options = explicit_warmup(curve); options && curve.leaks()) {
    row.with_warmup = tracker::judge(series_of(curve, curve.xs.size()), *options).verdict;
  }
  return row;
}

std::string prefix_text(const std::map<Verdict, std::size_t>& prefixes) {
  std::string text;
  for (const auto& [verdict, count] : prefixes) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, tracker::verdict_name(verdict));
  }
  return text;
}

}  // namespace

Result<std::vector<RealCurve>> load_real_curves(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text) {
    return text.error();
  }
  Result<std::vector<recording::JsonSeries>> parsed = recording::parse_json_series(*text, path);
  if (!parsed) {
    return parsed.error();
  }
  const std::map<std::string, std::string> classes = classes_in(*text);
  std::vector<RealCurve> curves;
  for (const recording::JsonSeries& series : *parsed) {
    RealCurve curve;
    curve.id = series.id;
    curve.is_steps = series.is_steps;
    const auto found = classes.find(series.id);
    curve.truth = found != classes.end() ? found->second : "";
    if (curve.truth.empty()) {
      return Error{Errc::kMalformed, fmt::format("{}: '{}' has no true_class", path, series.id)};
    }
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (series.x[i] && series.y_bytes[i]) {
        curve.xs.push_back(*series.x[i]);
        curve.bytes.push_back(*series.y_bytes[i]);
      }
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

tracker::Series series_of(const RealCurve& curve, std::size_t count) {
  tracker::Series series;
  for (std::size_t i = 0; i < count; ++i) {
    series.add(curve.is_steps ? tracker::kUnknown : curve.xs[i],
               curve.is_steps ? curve.xs[i] : tracker::kUnknown, curve.bytes[i]);
  }
  return series;
}

std::optional<tracker::Options> explicit_warmup(const RealCurve& curve) {
  const std::size_t n = curve.xs.size();
  if (n < kEnoughPoints) {
    return std::nullopt;
  }
  const std::size_t kept = std::max<std::size_t>(4, (n * 6 + 9) / 10);
  // Between two points: whether the end itself is inside does not matter.
  const double end = (curve.xs[n - kept - 1] + curve.xs[n - kept]) / 2.0;
  tracker::Options options;
  (curve.is_steps ? options.warmup.steps : options.warmup.seconds) = end - curve.xs.front();
  return options;
}

void judge_real_curves(const std::vector<RealCurve>& curves, Bars& bars) {
  fmt::print(
      "\n| real curve | points | truth | verdict | confidence | its prefixes | with "
      "`--warmup` |\n| --- | ---: | --- | --- | ---: | --- | --- |\n");
  std::size_t alarms = 0;
  std::size_t silent = 0;
  std::size_t short_decided = 0;
  std::size_t undecided_with_warmup = 0;
  for (const RealCurve& curve : curves) {
    const Row row = judge_curve(curve);
    const Verdict verdict = row.full.verdict;
    const bool enough = curve.xs.size() >= kEnoughPoints;
    if (!curve.leaks()) {
      const auto found = row.prefixes.find(Verdict::kLeak);
      alarms += (verdict == Verdict::kLeak ? 1U : 0U) +
                (found != row.prefixes.end() ? found->second : 0U);
    } else if (enough) {
      silent += verdict != Verdict::kLeak && verdict != Verdict::kGrowing ? 1U : 0U;
      undecided_with_warmup += row.with_warmup != Verdict::kLeak ? 1U : 0U;
    }
    if (!enough) {
      const bool good = row.full.undetermined && (!rises(curve) || verdict == Verdict::kGrowing);
      short_decided += good ? 0U : 1U;
    }
    fmt::print("| {} | {} | {} | {} | {:.2f} | {} | {} |\n", curve.id, curve.xs.size(), curve.truth,
               tracker::verdict_name(verdict), row.full.confidence, prefix_text(row.prefixes),
               row.with_warmup ? tracker::verdict_name(*row.with_warmup) : "");
  }
  bars.at_most("false alarms on real curves and their prefixes", static_cast<double>(alarms), 0.0,
               "");
  bars.at_most("real leaks of 6 points or more that are neither `leak` nor `growing`",
               static_cast<double>(silent), 0.0, "");
  bars.at_most("the same, with `--warmup`, that are not `leak`",
               static_cast<double>(undecided_with_warmup), 0.0, "");
  bars.at_most("real curves under 6 points that were decided", static_cast<double>(short_decided),
               0.0, "");
}

}  // namespace tidemark::bench
