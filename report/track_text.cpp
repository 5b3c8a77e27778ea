// SPDX-License-Identifier: Apache-2.0
#include "report/track_text.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "report/document.h"
#include "report/loss_text.h"
#include "report/track_words.h"

namespace tidemark::report {
namespace {

using tracker::Axis;
using tracker::Evidence;
using tracker::EvidenceKind;
using tracker::Pattern;
using tracker::PatternKind;
using tracker::SeriesVerdict;
using tracker::TrackVerdict;

void add_numbers(Document& document, const SeriesVerdict& reading) {
  document.row(
      "floor",
      fmt::format("{} at first, {} at last ({}), lowest {}",
                  format_bytes(reading.first_floor_bytes), format_bytes(reading.last_floor_bytes),
                  format_bytes_delta(reading.last_floor_bytes - reading.first_floor_bytes),
                  format_bytes(reading.min_bytes)));
  document.row("ceiling", fmt::format("{}, mean {}", format_bytes(reading.max_bytes),
                                      format_bytes(reading.mean_bytes)));
  std::string seen = std::to_string(reading.samples);
  if (!reading.floor.empty()) {
    seen += fmt::format(", {} to {}", place_text(reading.begin, reading.axis),
                        place_text(reading.end, reading.axis));
  }
  if (!reading.likelihood) {  // else the answer says how likely it is
    seen += "; confidence " + format_percent(reading.confidence);
  }
  document.row("samples", seen);
}

// Whether growth goes on is no question where there is none; JSON has the figures.
bool is_worth_printing(EvidenceKind kind, const SeriesVerdict& reading) {
  if (kind == EvidenceKind::kStillSince && reading.find(tracker::PatternKind::kDrift) != nullptr) {
    return false;  // still but for the drift
  }
  const bool is_about_growth =
      kind == EvidenceKind::kStillRising || kind == EvidenceKind::kSaturationBic ||
      kind == EvidenceKind::kRateAgainstGate || kind == EvidenceKind::kEqualJumps;
  return !is_about_growth || reading.verdict >= tracker::Verdict::kGrowing;
}

// A role or tree of one process has the curve of that process.
bool is_same_curve(const TrackVerdict& a, const TrackVerdict& b) {
  return a.metric == b.metric && a.series.samples == b.series.samples &&
         a.series.first_floor_bytes == b.series.first_floor_bytes &&
         a.series.last_floor_bytes == b.series.last_floor_bytes &&
         a.series.mean_bytes == b.series.mean_bytes;
}

// The other curves, those that changed most first.
std::vector<std::string> other_lines(const tracker::JudgedRun& result) {
  constexpr std::size_t kMost = 6;
  const tracker::RunVerdict& verdict = *result.verdict;
  std::vector<const TrackVerdict*> others;
  std::size_t stable_processes = 0;  // they are in the line of their role
  std::size_t early_processes = 0;
  for (std::size_t i = 0; i < verdict.tracks.size(); ++i) {
    const TrackVerdict& other = verdict.tracks[i];
    if (i == verdict.where || is_same_curve(other, verdict.answer())) {
      continue;
    }
    if (result.run.tracks[other.track].kind == tracker::TrackKind::kProcess &&
        other.series.verdict == tracker::Verdict::kStable) {
      ++(other.series.undetermined ? early_processes : stable_processes);
    } else {
      others.push_back(&other);
    }
  }
  const auto change = [](const TrackVerdict* other) {
    return std::fabs(other->series.last_floor_bytes - other->series.first_floor_bytes);
  };
  std::stable_sort(others.begin(), others.end(), [&](const TrackVerdict* a, const TrackVerdict* b) {
    return a->series.verdict != b->series.verdict ? a->series.verdict > b->series.verdict
                                                  : change(a) > change(b);
  });
  const auto word = [](const TrackVerdict& other) {
    return fmt::format("{} ", verdict_so_far(other.series, other.series.verdict));
  };
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(others.size(), kMost); ++i) {
    const TrackVerdict& other = *others[i];
    lines.push_back(fmt::format(
        "{:<8}{}: {} -> {}", word(other), curve_text(other.metric, result.run.tracks[other.track]),
        format_bytes(other.series.first_floor_bytes), format_bytes(other.series.last_floor_bytes)));
  }
  if (others.size() > kMost) {
    lines.push_back(fmt::format("and {} more: --json shows all", others.size() - kMost));
  }
  if (stable_processes > 0) {
    lines.push_back("stable  " +
                    format_count(stable_processes, "single process", "single processes"));
  }
  if (early_processes > 0) {
    lines.push_back("too early " +
                    format_count(early_processes, "single process", "single processes"));
  }
  return lines;
}

// Of the last third of the floor.
std::string slope_text(const SeriesVerdict& reading) {
  const auto& floor = reading.floor;
  if (floor.size() < 2) {
    return "";
  }
  const tracker::FloorPoint& from =
      floor[floor.size() - 1 - std::max<std::size_t>(1, floor.size() / 3)];
  const tracker::FloorPoint& to = floor.back();
  const double change = to.floor_bytes - from.floor_bytes;
  tracker::GrowthRate rate;
  if (to.at.t_s && from.at.t_s && *to.at.t_s > *from.at.t_s) {
    rate.bytes_per_s = change / (*to.at.t_s - *from.at.t_s);
  } else if (to.at.step && from.at.step && *to.at.step > *from.at.step) {
    rate.bytes_per_step = change / (*to.at.step - *from.at.step);
  }
  const std::string text = rate_text(rate, reading.axis);
  return text.empty() ? "" : fmt::format("  {}{}", change < 0.0 ? "" : "+", text);
}

// " (needs 6)"; nothing where there is no bar.
template <typename ToText>
std::string bar_text(const Evidence& evidence, std::string_view words, ToText to_text) {
  return evidence.bar ? fmt::format(" ({} {})", words, to_text(*evidence.bar)) : "";
}

// " (1.90 MiB/step to 2.10 MiB/step)", on the judged axis; "" where no interval is known.
std::string rate_interval_text(const tracker::GrowthRate& rate, Axis axis) {
  const bool by_step = axis == Axis::kSteps;
  const auto& low = by_step ? rate.low_bytes_per_step : rate.low_bytes_per_s;
  const auto& high = by_step ? rate.high_bytes_per_step : rate.high_bytes_per_s;
  return low && high ? fmt::format(" ({} to {})", format_rate(*low, unit_of(axis)),
                                   format_rate(*high, unit_of(axis)))
                     : "";
}

}  // namespace

std::vector<std::string> overhead_texts(const tracker::RunVerdict& verdict) {
  std::vector<std::string> lines;
  for (const tracker::Overhead& overhead : verdict.overheads) {
    std::string line = fmt::format("{} x{}: {} of RSS together", role_name(overhead.role),
                                   overhead.processes, format_bytes(overhead.rss_bytes));
    if (overhead.footprint_bytes) {
      line += fmt::format(", {} with shared pages counted once",
                          format_bytes(*overhead.footprint_bytes));
    } else if (overhead.pss_bytes) {
      line += fmt::format(", {} of PSS", format_bytes(*overhead.pss_bytes));
    }
    lines.push_back(line + "; constant");
  }
  return lines;
}

std::vector<std::string> loss_texts(const tracker::RunTracks& run) {
  std::vector<std::string> lines;
  for (const auto& [what, count] : run.losses) {
    lines.push_back(loss_text(what, count));
  }
  return lines;
}

std::string pattern_text(const Pattern& pattern, Axis axis) {
  std::string name(pattern_name(pattern.kind));
  std::replace(name.begin(), name.end(), '_', ' ');
  const std::string from = place_text(pattern.from, axis);
  const std::string to = place_text(pattern.to, axis);
  const std::string span = from == to ? from : from + " to " + to;
  const std::string rate = rate_text(pattern.rate, axis);
  switch (pattern.kind) {
    case PatternKind::kStep:
      return fmt::format("{:<9}at {}: {}, and stays", name, from,
                         format_bytes_delta(pattern.height_bytes));
    case PatternKind::kSpikes: {
      std::string text = fmt::format("{:<9}{} of about {}, {}", name, pattern.count,
                                     format_bytes(pattern.height_bytes), span);
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
                         format_bytes_delta(pattern.growth_bytes), rate.empty() ? "" : ", ", rate,
                         rate_interval_text(pattern.rate, axis));
    case PatternKind::kWarmup:
    case PatternKind::kDrift:
    case PatternKind::kGrowth:
    case PatternKind::kLateRise:
      return fmt::format("{:<9}{}: {}{}{}", name, span, format_bytes_delta(pattern.growth_bytes),
                         rate.empty() ? "" : ", ", rate);
    case PatternKind::kRelease:
    case PatternKind::kTeardown:
      break;
  }
  return fmt::format("{:<9}{}: {}", name, span, format_bytes_delta(pattern.growth_bytes));
}

std::string evidence_text(const Evidence& evidence, Axis axis) {
  const double value = evidence.value;
  const RateUnit unit = unit_of(axis);
  const auto count = [](double x) { return fmt::format("{:.0f}", x); };
  const auto size = [](double x) { return format_bytes(x); };
  const auto percent = [](double x) { return format_percent(x); };
  const auto rate = [&](double x) { return format_rate(x, unit); };
  const auto bar = [&](std::string_view words, auto to_text) {
    return bar_text(evidence, words, to_text);
  };
  const std::string_view s = value == 1.0 ? "" : "s";
  switch (evidence.kind) {
    case EvidenceKind::kPoints:
      return fmt::format("{:.0f} point{} of the curve{}", value, s, bar("needs", count));
    case EvidenceKind::kFloorRise:
      return fmt::format("the floor changed by {}{}", format_bytes_delta(value),
                         bar("counts from", size));
    case EvidenceKind::kSlopeInSigmas:
      return fmt::format("the slope is {} times its uncertainty{}", number_text(value),
                         bar("counts from", number_text));
    case EvidenceKind::kRateAgainstGate:
      return fmt::format("the rate is {}{}", rate(value), bar("--min-leak is", rate));
    case EvidenceKind::kStillRising:
      return fmt::format("at the end it rises at {} of its mean rate{}", format_percent(value),
                         bar("has stopped below", percent));
    case EvidenceKind::kSaturationBic:
      return value >= 0.0
                 ? fmt::format("a curve that levels off fits better than a line by {} BIC{}",
                               number_text(value), bar("counts from", number_text))
                 : fmt::format("a line fits better than a curve that levels off by {} BIC",
                               number_text(-value));
    case EvidenceKind::kSlowingDown:
      return evidence.bar ? fmt::format("the last third grows at {} of the rate before it{}",
                                        format_percent(value), bar("slows down below", percent))
                          : "growth has been slowing down ever since the start";
    case EvidenceKind::kBlocksInWindow:
      return fmt::format("{:.0f} point{} of the floor after the allowance{}", value, s,
                         bar("a leak needs", count));
    case EvidenceKind::kAllowanceEnd:
      return evidence.bar
                 ? fmt::format("the warm-up allowance ends at {}, the data at {}",
                               format_place(*evidence.bar, unit), format_place(value, unit))
                 : fmt::format("the data end at {}", format_place(value, unit));
    case EvidenceKind::kStillSince:
      return fmt::format("the floor has stood still for the last {} of the run{}",
                         format_percent(value), bar("counts from", percent));
    case EvidenceKind::kEqualJumps:
      return fmt::format("{:.0f} jump{} of similar size{}", value, s, bar("needs", count));
    case EvidenceKind::kSpikeHeight:
      return fmt::format("spikes rise {} above the floor{}", format_bytes(value),
                         bar("counts from", size));
    case EvidenceKind::kNoise:
      return fmt::format("the floor is uncertain by {} (one sigma)", format_bytes(value));
  }
  return "";
}

std::vector<std::string> evidence_texts(const SeriesVerdict& reading) {
  std::vector<std::string> lines;
  for (const tracker::Evidence& evidence : reading.evidence) {
    if (is_worth_printing(evidence.kind, reading)) {
      lines.push_back(evidence_text(evidence, reading.axis));
    }
  }
  return lines;
}

std::string track_text(const tracker::JudgedRun& result, Glyphs glyphs,
                       const JudgedTarget& target) {
  Document document;
  document.paragraph(answer_text(result));
  if (!result.verdict) {
    return to_text(document.rows("not seen", loss_texts(result.run)));
  }
  for (const std::string& ignored : ignored_options(result)) {
    document.paragraph(ignored, "note: ");
  }
  const SeriesVerdict& reading = result.verdict->answer().series;
  if (const std::string chart = chart_text(reading, glyphs); !chart.empty()) {
    document.empty_line().block(chart);
  }
  add_numbers(document.empty_line(), reading);
  std::vector<std::string> patterns;
  for (const Pattern& pattern : reading.patterns) {
    patterns.push_back(pattern_text(pattern, reading.axis));
  }
  document.rows("found", std::move(patterns))
      .rows("because", evidence_texts(reading))
      .rows("others", other_lines(result))
      .rows("overhead", overhead_texts(*result.verdict));
  if (result.verdict->gpu_growth) {
    document.row("gpu", gpu_growth_text(*result.verdict->gpu_growth, reading.axis));
  }
  for (const tracker::Advice& advice : result.verdict->advice) {
    document.empty_line().row("seen", advice.seen).row("likely", advice.cause);
    document.row("do", advice.remedy);
  }
  if (!result.run.losses.empty()) {
    document.empty_line().rows("not seen", loss_texts(result.run));
  }
  document.empty_line().paragraph(next_text(result, target), "next: ");
  return to_text(document);
}

std::string track_line(const tracker::JudgedRun& result, double t_s) {
  std::string line = format_clock(t_s);
  if (!result.verdict) {
    return line + "  nothing to judge yet\n";
  }
  const TrackVerdict& answer = result.verdict->answer();
  if (!answer.series.floor.empty()) {
    const tracker::FloorPoint& last = answer.series.floor.back();
    if (last.at.step) {
      line += fmt::format("  step {:.0f}", *last.at.step);
    }
    line += fmt::format("  floor {}  ceiling {}", format_bytes(last.floor_bytes),
                        format_bytes(last.ceiling_bytes));
  }
  line += slope_text(answer.series);
  line += fmt::format("  {}", verdict_so_far(answer.series, result.verdict->verdict));
  if (answer.series.likelihood) {
    line += fmt::format(", leak {} likely", format_percent(answer.series.likelihood->chance));
  }
  if (answer.series.undetermined && answer.series.needs) {
    if (const std::string needs = needs_text(*answer.series.needs); !needs.empty()) {
      line += fmt::format(" (needs {})", needs);
    }
  }
  return line + '\n';
}

}  // namespace tidemark::report
