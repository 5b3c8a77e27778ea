// SPDX-License-Identifier: Apache-2.0
#include "report/track_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "common/wrap_text.h"
#include "report/evidence_words.h"
#include "report/gpu_words.h"
#include "report/track_words.h"

namespace tidemark::report {
namespace {

using tracker::SeriesVerdict;
using tracker::TrackVerdict;

std::string numbers_text(const SeriesVerdict& reading) {
  std::string out = wrap_text(
      "floor    ",
      fmt::format("{} at first, {} at last ({}), lowest {}", size_text(reading.first_floor_bytes),
                  size_text(reading.last_floor_bytes),
                  change_text(reading.last_floor_bytes - reading.first_floor_bytes),
                  size_text(reading.min_bytes)));
  out += wrap_text("ceiling  ", fmt::format("{}, mean {}", size_text(reading.max_bytes),
                                            size_text(reading.mean_bytes)));
  std::string seen = std::to_string(reading.samples);
  if (!reading.floor.empty()) {
    seen += fmt::format(", {} to {}", place_text(reading.begin, reading.axis),
                        place_text(reading.end, reading.axis));
  }
  seen += fmt::format("; confidence {:.0f} %", reading.confidence * 100.0);
  return out + wrap_text("samples  ", seen);
}

// `lines` under a common title that stands before the first of them.
std::string block(std::string_view title, const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) {
    out += wrap_text(fmt::format("{:<9}", out.empty() ? title : ""), line);
  }
  return out;
}

// Whether growth goes on is no question where there is none; JSON has the figures.
bool tells_something(tracker::EvidenceKind kind, const SeriesVerdict& reading) {
  using tracker::EvidenceKind;
  if (kind == EvidenceKind::kStillSince && reading.find(tracker::PatternKind::kDrift) != nullptr) {
    return false;  // still but for the drift
  }
  const bool is_about_growth =
      kind == EvidenceKind::kStillRising || kind == EvidenceKind::kSaturationBic ||
      kind == EvidenceKind::kRateAgainstGate || kind == EvidenceKind::kEqualJumps;
  return !is_about_growth || reading.verdict >= tracker::Verdict::kGrowing;
}

// A role or tree of one process says nothing that the process has not said.
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
  std::size_t calm_processes = 0;  // their role speaks for them
  for (std::size_t i = 0; i < verdict.tracks.size(); ++i) {
    const TrackVerdict& other = verdict.tracks[i];
    if (i == verdict.where || is_same_curve(other, verdict.answer())) {
      continue;
    }
    if (result.run.tracks[other.track].kind == tracker::TrackKind::kProcess &&
        other.series.verdict == tracker::Verdict::kStable) {
      ++calm_processes;
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
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(others.size(), kMost); ++i) {
    const TrackVerdict& other = *others[i];
    lines.push_back(fmt::format("{:<8}{}: {} -> {}", verdict_name(other.series.verdict),
                                curve_text(other.metric, result.run.tracks[other.track]),
                                size_text(other.series.first_floor_bytes),
                                size_text(other.series.last_floor_bytes)));
  }
  if (others.size() > kMost) {
    lines.push_back(fmt::format("and {} more: --json shows all", others.size() - kMost));
  }
  if (calm_processes > 0) {
    lines.push_back(fmt::format("stable  {} single {}", calm_processes,
                                calm_processes == 1 ? "process" : "processes"));
  }
  return lines;
}

std::vector<std::string> overhead_lines(const tracker::RunVerdict& verdict) {
  std::vector<std::string> lines;
  for (const tracker::Overhead& overhead : verdict.overheads) {
    std::string line = fmt::format("{} x{}: {} of RSS together", role_name(overhead.role),
                                   overhead.processes, size_text(overhead.rss_bytes));
    if (overhead.footprint_bytes) {
      line +=
          fmt::format(", {} with shared pages counted once", size_text(*overhead.footprint_bytes));
    } else if (overhead.pss_bytes) {
      line += fmt::format(", {} of PSS", size_text(*overhead.pss_bytes));
    }
    lines.push_back(line + "; constant");
  }
  return lines;
}

std::string advice_text(const tracker::Advice& advice) {
  return wrap_text("seen     ", advice.seen) + wrap_text("likely   ", advice.cause) +
         wrap_text("do       ", advice.remedy);
}

std::vector<std::string> loss_lines(const tracker::RunTracks& run) {
  std::vector<std::string> lines;
  for (const auto& [what, count] : run.losses) {
    lines.push_back(fmt::format("{} x{}", escape_text(what), count));
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

}  // namespace

std::vector<std::string> evidence_texts(const SeriesVerdict& reading) {
  std::vector<std::string> lines;
  for (const tracker::Evidence& evidence : reading.evidence) {
    if (tells_something(evidence.kind, reading)) {
      lines.push_back(evidence_text(evidence, reading.axis));
    }
  }
  return lines;
}

std::string track_text(const tracker::JudgedRun& result, Glyphs glyphs) {
  std::string out = wrap_text("", answer_text(result));
  if (!result.verdict) {
    return out + block("not seen", loss_lines(result.run));
  }
  for (const std::string& ignored : ignored_options(result)) {
    out += wrap_text("note: ", ignored);
  }
  const SeriesVerdict& reading = result.verdict->answer().series;
  if (const std::string chart = chart_text(reading, glyphs); !chart.empty()) {
    out += '\n' + chart;
  }
  out += '\n' + numbers_text(reading);
  std::vector<std::string> lines;
  for (const tracker::Pattern& pattern : reading.patterns) {
    lines.push_back(pattern_text(pattern, reading.axis));
  }
  out += block("found", lines);
  out += block("because", evidence_texts(reading));
  out += block("others", other_lines(result));
  out += block("overhead", overhead_lines(*result.verdict));
  if (result.verdict->gpu_growth) {
    out += wrap_text("gpu      ", gpu_growth_text(*result.verdict->gpu_growth, reading.axis));
  }
  for (const tracker::Advice& advice : result.verdict->advice) {
    out += '\n' + advice_text(advice);
  }
  if (const std::string next = next_text(result); result.verdict->advice.empty() && !next.empty()) {
    out += '\n' + wrap_text("next: ", next);
  }
  const std::string losses = block("not seen", loss_lines(result.run));
  return losses.empty() ? out : out + '\n' + losses;
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
    line += fmt::format("  floor {}  ceiling {}", size_text(last.floor_bytes),
                        size_text(last.ceiling_bytes));
  }
  line += slope_text(answer.series);
  line += fmt::format("  {}", verdict_name(result.verdict->verdict));
  if (answer.series.undetermined && answer.series.needs) {
    if (const std::string needs = needs_text(*answer.series.needs); !needs.empty()) {
      line += fmt::format(" (needs {})", needs);
    }
  }
  return line + '\n';
}

}  // namespace tidemark::report
