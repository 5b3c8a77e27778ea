// SPDX-License-Identifier: Apache-2.0
#include "dashboard/verdict_words.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "common/units.h"

namespace tidemark::dashboard {
namespace {

using tracker::Axis;
using tracker::Pattern;
using tracker::PatternKind;
using tracker::SeriesVerdict;
using tracker::Verdict;

std::string size_words(double bytes) {
  return std::isfinite(bytes)
             ? format_bytes(static_cast<std::uint64_t>(std::clamp(bytes, 0.0, 0x1p62)))
             : "?";
}

std::string signed_words(double bytes) {
  return (bytes < 0.0 ? "-" : "+") + size_words(std::fabs(bytes));
}

std::string step_rate_words(double bytes_per_step) {
  constexpr double kSmall = 1024.0;
  return std::fabs(bytes_per_step) < kSmall ? signed_words(bytes_per_step * 1000.0) + "/1000 steps"
                                            : signed_words(bytes_per_step) + "/step";
}

std::string growth_words(const tracker::GrowthRate& rate) {
  std::string text;
  if (rate.bytes_per_step) {
    text = step_rate_words(*rate.bytes_per_step);
  }
  if (rate.bytes_per_s) {
    text += (text.empty() ? "" : ", ") + rate_words(*rate.bytes_per_s);
  }
  return text;
}

std::string place_words(const tracker::Moment& at, Axis axis) {
  if (at.step && (axis == Axis::kSteps || !at.t_s)) {
    return fmt::format("step {:.0f}", *at.step);
  }
  return at.t_s ? format_clock(*at.t_s) : "?";
}

std::string growing_words(const SeriesVerdict& reading, PatternKind kind) {
  const Pattern* pattern = reading.find(kind);
  if (pattern == nullptr) {
    return signed_words(reading.last_floor_bytes - reading.first_floor_bytes) + " so far";
  }
  const std::string rate = growth_words(pattern->rate);
  return fmt::format("{}{}since {}", rate, rate.empty() ? "" : " ",
                     place_words(pattern->from, reading.axis));
}

std::string spikes_words(const SeriesVerdict& reading) {
  const Pattern* spikes = reading.find(PatternKind::kSpikes);
  return spikes == nullptr ? ""
                           : fmt::format("{} {} of about {}, ", spikes->count,
                                         spikes->count == 1 ? "spike" : "spikes",
                                         size_words(spikes->height_bytes));
}

std::string interval_words(double low, double high) {
  const std::string from = format_duration(low);
  const std::string to = format_duration(high);
  return from == to ? from : from + " to " + to;
}

}  // namespace

std::string rate_words(double bytes_per_s) {
  constexpr double kSmall = 100.0 * 1024.0;
  const double per_min = bytes_per_s * 60.0;
  return std::fabs(per_min) < kSmall ? signed_words(per_min * 60.0) + "/h"
                                     : signed_words(per_min) + "/min";
}

std::string verdict_word(const SeriesVerdict& reading, Verdict verdict) {
  switch (verdict) {
    case Verdict::kLeak:
      return "LEAK";
    case Verdict::kGrowing:
      return "GROWING";
    case Verdict::kSpikes:
    case Verdict::kWarmup:
    case Verdict::kStable:
      break;
  }
  if (reading.undetermined) {
    return "TOO EARLY";
  }
  return verdict == Verdict::kSpikes   ? "SPIKES"
         : verdict == Verdict::kWarmup ? "WARMED UP"
                                       : "STABLE";
}

Tone verdict_tone(const SeriesVerdict& reading, Verdict verdict) {
  if (verdict == Verdict::kLeak) {
    return Tone::kBad;
  }
  if (verdict == Verdict::kGrowing) {
    return Tone::kWatch;
  }
  return reading.undetermined ? Tone::kUnknown : Tone::kGood;
}

std::string finding_words(const SeriesVerdict& reading, Verdict verdict) {
  const std::string needs = reading.needs ? needs_text(*reading.needs) : "";
  switch (verdict) {
    case Verdict::kLeak:
      return growing_words(reading, PatternKind::kLeak);
    case Verdict::kGrowing:
      return growing_words(reading, PatternKind::kGrowth) +
             (needs.empty() ? "" : "; needs " + needs);
    case Verdict::kSpikes:
    case Verdict::kWarmup:
    case Verdict::kStable:
      break;
  }
  if (reading.undetermined) {
    return needs.empty() ? "no growth in the first samples" : "no growth so far; needs " + needs;
  }
  const std::string floor = size_words(reading.last_floor_bytes);
  if (const Pattern* warmup = reading.find(PatternKind::kWarmup)) {
    return fmt::format("{}grew by {} until {}, stands at {}", spikes_words(reading),
                       size_words(warmup->growth_bytes), place_words(warmup->to, reading.axis),
                       floor);
  }
  return fmt::format("{}floor stays at {}", spikes_words(reading), floor);
}

std::string outlook_words(const SeriesVerdict& reading) {
  const tracker::Forecast& forecast = reading.forecast;
  if (forecast.asymptote_bytes) {
    std::string where = "settles near " + size_words(*forecast.asymptote_bytes);
    if (!forecast.limit_bytes) {
      return where;
    }
    const bool is_safe = *forecast.asymptote_bytes < *forecast.limit_bytes;
    return fmt::format("{}, {} the limit of {}", where, is_safe ? "below" : "ABOVE",
                       size_words(*forecast.limit_bytes));
  }
  if (!forecast.limit_bytes) {
    return "";
  }
  std::string limit = "limit " + size_words(*forecast.limit_bytes);
  if (forecast.in_s_low.value_or(forecast.in_steps_low.value_or(1.0)) <= 0.0) {
    return limit + " exceeded";
  }
  if (forecast.in_s_low) {
    return limit + (forecast.in_s_high
                        ? " in " + interval_words(*forecast.in_s_low, *forecast.in_s_high)
                        : " in no less than " + format_duration(*forecast.in_s_low));
  }
  if (forecast.in_steps_low) {
    return fmt::format("{} in {:.0f} steps or more", limit, *forecast.in_steps_low);
  }
  return limit;
}

}  // namespace tidemark::dashboard
