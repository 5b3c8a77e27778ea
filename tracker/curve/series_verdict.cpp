// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/series_verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "common/units.h"

namespace tidemark::tracker {
namespace {

template <typename Enum, std::size_t kCount>
std::string_view name_in(const std::array<std::string_view, kCount>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < kCount ? names[index] : std::string_view("?");
}

// Up, to two digits: nobody waits for 89,195 steps.
double rough(double value) {
  const double whole = std::ceil(value);
  if (whole < 100.0) {
    return whole;
  }
  const double unit = std::pow(10.0, std::floor(std::log10(whole)) - 1.0);
  return std::ceil(whole / unit) * unit;
}

// Up, to seconds below two minutes, to minutes below two hours, to hours beyond.
std::string rough_duration(double seconds) {
  constexpr double kMinute = 60.0;
  constexpr double kHour = 3600.0;
  const double unit = seconds < 2 * kMinute ? 1.0 : seconds < 2 * kHour ? kMinute : kHour;
  const double units = std::ceil(std::max(seconds, 1.0) / unit);
  return fmt::format("{:.0f} {}", units, unit == 1.0 ? "s" : unit == kMinute ? "min" : "h");
}

}  // namespace

const Pattern* SeriesVerdict::find(PatternKind kind) const {
  const auto it = std::find_if(patterns.begin(), patterns.end(),
                               [&](const Pattern& pattern) { return pattern.kind == kind; });
  return it == patterns.end() ? nullptr : &*it;
}

const Pattern* SeriesVerdict::find(std::initializer_list<PatternKind> kinds) const {
  for (const PatternKind kind : kinds) {
    if (const Pattern* pattern = find(kind)) {
      return pattern;
    }
  }
  return nullptr;
}

std::string_view verdict_name(Verdict verdict) {
  static constexpr std::array<std::string_view, 5> kNames{"stable", "warmup", "spikes", "growing",
                                                          "leak"};
  return name_in(kNames, verdict);
}

std::string_view pattern_name(PatternKind kind) {
  static constexpr std::array<std::string_view, 9> kNames{
      "warmup", "step", "spikes", "drift", "growth", "late_rise", "leak", "release", "teardown"};
  return name_in(kNames, kind);
}

std::string_view rise_form_name(RiseForm form) {
  static constexpr std::array<std::string_view, 4> kNames{"straight", "slowing", "ended", "uneven"};
  return name_in(kNames, form);
}

std::string_view shape_name(LeakShape shape) {
  static constexpr std::array<std::string_view, 3> kNames{"linear", "steps", "accelerating"};
  return name_in(kNames, shape);
}

std::string_view evidence_name(EvidenceKind kind) {
  static constexpr std::array<std::string_view, 13> kNames{
      "points",        "floor_rise_bytes", "slope_in_sigmas", "rate_against_min_leak",
      "still_rising",  "saturation_bic",   "slowing_down",    "blocks_in_window",
      "allowance_end", "still_share",      "equal_jumps",     "spike_height_bytes",
      "noise_bytes"};
  return name_in(kNames, kind);
}

std::string needs_text(const Needs& needs) {
  if (needs.more_steps) {
    const auto count = static_cast<std::uint64_t>(rough(*needs.more_steps));
    const std::string steps = fmt::format("about {} more steps", format_grouped(count));
    return needs.more_s ? fmt::format("{} ({})", steps, rough_duration(*needs.more_s)) : steps;
  }
  if (needs.more_s) {
    return fmt::format("about {} more", rough_duration(*needs.more_s));
  }
  return needs.more_points ? fmt::format("about {:.0f} more samples", std::ceil(*needs.more_points))
                           : "";
}

std::string needs_hint(const Needs& needs) {
  constexpr double kLongWait = 15 * 60;
  constexpr double kManySteps = 5'000;
  if (needs.more_s.value_or(0.0) <= kLongWait &&
      (needs.more_s || needs.more_steps.value_or(0.0) <= kManySteps)) {
    return "";
  }
  return fmt::format("if you know when warm-up ends, say so: --warmup {}",
                     needs.more_steps ? "200steps" : "2min");
}

}  // namespace tidemark::tracker
