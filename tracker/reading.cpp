// SPDX-License-Identifier: Apache-2.0
#include "tracker/reading.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "common/units.h"

namespace tidemark::tracker {
namespace {

template <typename Enum, std::size_t kCount>
std::string_view name_in(const std::array<std::string_view, kCount>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < kCount ? names[index] : std::string_view("?");
}

}  // namespace

const Pattern* Reading::find(PatternKind kind) const {
  const auto it = std::find_if(patterns.begin(), patterns.end(),
                               [&](const Pattern& pattern) { return pattern.kind == kind; });
  return it == patterns.end() ? nullptr : &*it;
}

std::string_view verdict_name(Verdict verdict) {
  static constexpr std::array<std::string_view, 5> kNames{"stable", "warmup", "spikes", "growing",
                                                          "leak"};
  return name_in(kNames, verdict);
}

std::string_view pattern_name(PatternKind kind) {
  static constexpr std::array<std::string_view, 8> kNames{"warmup", "step", "spikes",  "drift",
                                                          "growth", "leak", "release", "teardown"};
  return name_in(kNames, kind);
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
  std::string text;
  const auto add = [&](const std::string& part) {
    text += text.empty() ? "about " : " and ";
    text += part;
  };
  if (needs.more_steps) {
    add(fmt::format("{:.0f} more steps", std::ceil(*needs.more_steps)));
  }
  if (needs.more_s) {
    add(fmt::format("{} more", format_duration(std::ceil(*needs.more_s))));
  }
  if (text.empty() && needs.more_points) {
    add(fmt::format("{:.0f} more samples", std::ceil(*needs.more_points)));
  }
  return text;
}

}  // namespace tidemark::tracker
