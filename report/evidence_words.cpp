// SPDX-License-Identifier: Apache-2.0
#include "report/evidence_words.h"

#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "common/units.h"
#include "report/track_words.h"

namespace tidemark::report {
namespace {

using tracker::Axis;
using tracker::Evidence;
using tracker::EvidenceKind;
using tracker::Pattern;
using tracker::PatternKind;

// " (needs 6)"; nothing where there is no bar.
std::string bar_text(std::string_view words, const std::optional<std::string>& bar) {
  return bar ? fmt::format(" ({} {})", words, *bar) : "";
}

template <typename ToText>
std::optional<std::string> with(const std::optional<double>& value, ToText to_text) {
  return value ? std::optional<std::string>(to_text(*value)) : std::nullopt;
}

// " (1.90 MiB/step to 2.10 MiB/step)", on the judged axis; "" where no interval is known.
std::string rate_interval_text(const tracker::GrowthRate& rate, Axis axis) {
  const bool by_step = axis == Axis::kSteps;
  const auto& low = by_step ? rate.low_bytes_per_step : rate.low_bytes_per_s;
  const auto& high = by_step ? rate.high_bytes_per_step : rate.high_bytes_per_s;
  return low && high
             ? fmt::format(" ({} to {})", per_axis_text(*low, axis), per_axis_text(*high, axis))
             : "";
}

}  // namespace

std::string pattern_text(const Pattern& pattern, Axis axis) {
  const std::string name(pattern_name(pattern.kind));
  const std::string from = place_text(pattern.from, axis);
  const std::string to = place_text(pattern.to, axis);
  const std::string span = from == to ? from : from + " to " + to;
  const std::string rate = rate_text(pattern.rate, axis);
  switch (pattern.kind) {
    case PatternKind::kStep:
      return fmt::format("{:<9}at {}: {}, and stays", name, from,
                         change_text(pattern.height_bytes));
    case PatternKind::kSpikes: {
      std::string text = fmt::format("{:<9}{} of about {}, {}", name, pattern.count,
                                     size_text(pattern.height_bytes), span);
      if (pattern.period_steps) {
        text += fmt::format(", every {} steps", number_text(*pattern.period_steps));
      }
      if (pattern.period_s) {
        text += fmt::format(", every {}", format_duration(*pattern.period_s));
      }
      return text;
    }
    case PatternKind::kLeak:
      return fmt::format("{:<9}{}, {}: {}{}{}{}", name, shape_name(pattern.shape), span,
                         change_text(pattern.growth_bytes), rate.empty() ? "" : ", ", rate,
                         rate_interval_text(pattern.rate, axis));
    case PatternKind::kWarmup:
    case PatternKind::kDrift:
    case PatternKind::kGrowth:
      return fmt::format("{:<9}{}: {}{}{}", name, span, change_text(pattern.growth_bytes),
                         rate.empty() ? "" : ", ", rate);
    case PatternKind::kRelease:
    case PatternKind::kTeardown:
      break;
  }
  return fmt::format("{:<9}{}: {}", name, span, change_text(pattern.growth_bytes));
}

std::string evidence_text(const Evidence& evidence, Axis axis) {
  const double value = evidence.value;
  const auto size_bar = [&](std::string_view words) {
    return bar_text(words, with(evidence.bar, size_text));
  };
  const auto number_bar = [&](std::string_view words) {
    return bar_text(words, with(evidence.bar, number_text));
  };
  const auto percent_bar = [&](std::string_view words) {
    return bar_text(words, with(evidence.bar, percent_text));
  };
  const auto place = [&](double x) {
    return axis == Axis::kSteps ? fmt::format("step {:.0f}", x) : format_clock(x);
  };
  const auto count_bar = [&](std::string_view words) {
    return bar_text(words, with(evidence.bar, [](double x) { return fmt::format("{:.0f}", x); }));
  };
  const std::string_view plural = value == 1.0 ? "" : "s";
  switch (evidence.kind) {
    case EvidenceKind::kPoints:
      return fmt::format("{:.0f} point{} of the curve{}", value, plural, count_bar("needs"));
    case EvidenceKind::kFloorRise:
      return fmt::format("the floor changed by {}{}", change_text(value), size_bar("counts from"));
    case EvidenceKind::kSlopeInSigmas:
      return fmt::format("the slope is {} times its uncertainty{}", number_text(value),
                         number_bar("counts from"));
    case EvidenceKind::kRateAgainstGate:
      return fmt::format("the rate is {}{}", per_axis_text(value, axis),
                         bar_text("--min-leak is", with(evidence.bar, [&](double bar) {
                                    return per_axis_text(bar, axis);
                                  })));
    case EvidenceKind::kStillRising:
      return fmt::format("at the end it rises at {} of its mean rate{}", percent_text(value),
                         percent_bar("has stopped below"));
    case EvidenceKind::kSaturationBic:
      return value >= 0.0
                 ? fmt::format("a curve that levels off fits better than a line by {} BIC{}",
                               number_text(value), number_bar("counts from"))
                 : fmt::format("a line fits better than a curve that levels off by {} BIC",
                               number_text(-value));
    case EvidenceKind::kSlowingDown:
      return evidence.bar ? fmt::format("the last third grows at {} of the rate before it{}",
                                        percent_text(value), percent_bar("slows down below"))
                          : "growth has been slowing down ever since the start";
    case EvidenceKind::kBlocksInWindow:
      return fmt::format("{:.0f} point{} of the floor after the allowance{}", value, plural,
                         count_bar("a leak needs"));
    case EvidenceKind::kAllowanceEnd:
      return evidence.bar ? fmt::format("the warm-up allowance ends at {}, the data at {}",
                                        place(*evidence.bar), place(value))
                          : fmt::format("the data end at {}", place(value));
    case EvidenceKind::kStillSince:
      return fmt::format("the floor has stood still for the last {} of the run{}",
                         percent_text(value), percent_bar("counts from"));
    case EvidenceKind::kEqualJumps:
      return fmt::format("{:.0f} jump{} of similar size{}", value, plural, count_bar("needs"));
    case EvidenceKind::kSpikeHeight:
      return fmt::format("spikes rise {} above the floor{}", size_text(value),
                         size_bar("counts from"));
    case EvidenceKind::kNoise:
      return fmt::format("the floor is uncertain by {} (one sigma)", size_text(value));
  }
  return "";
}

}  // namespace tidemark::report
