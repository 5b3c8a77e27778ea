// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "common/text.h"
#include "dashboard/model_builder.h"

namespace tidemark::dashboard {
namespace {

TimelineMark mark_of(const HistoryMark& mark) {
  struct Look {
    char letter;
    Tone tone;
  };
  static constexpr std::array<Look, 8> kLooks{{{'+', Tone::kUnknown},
                                               {'-', Tone::kUnknown},
                                               {'W', Tone::kWatch},
                                               {'O', Tone::kBad},
                                               {'g', Tone::kWatch},
                                               {'E', Tone::kGood},
                                               {'M', Tone::kGood},
                                               {'X', Tone::kBad}}};
  const Look look = kLooks[static_cast<std::size_t>(mark.kind)];
  return {mark.t_s, look.letter, look.tone};
}

std::string zoom_words(Zoom zoom, bool time_is_steps) {
  static constexpr std::array<std::string_view, 4> kWords{"1 min", "10 min", "1 h",
                                                          "the whole run"};
  const auto steps = zoom_seconds(zoom);
  return steps && time_is_steps ? fmt::format("{:.0f} steps", *steps)
                                : std::string(kWords[static_cast<std::size_t>(zoom)]);
}

// The verdict on the tree, where that is on another curve than the history keeps.
const tracker::TrackVerdict* other_curve(const RunHistory& history,
                                         const std::optional<tracker::JudgedRun>& judged) {
  if (!judged || !judged->verdict) {
    return nullptr;
  }
  const tracker::Metric kept =
      history.tree().footprint_bytes ? tracker::Metric::kFootprint : tracker::Metric::kRss;
  for (const tracker::TrackVerdict& reading : judged->verdict->tracks) {
    const tracker::Track& track = judged->run.tracks[reading.track];
    if (track.kind == tracker::TrackKind::kTree) {
      return reading.metric != kept && !track.of(reading.metric).empty() ? &reading : nullptr;
    }
  }
  return nullptr;
}

// The cells of a long run are longer than a short window: what begins before it reaches into it.
std::vector<HistoryPoint> points_of(const tracker::Series& series, const Window& window,
                                    bool time_is_steps) {
  std::vector<HistoryPoint> points;
  for (const tracker::Cell& cell : series.cells()) {
    const double at = time_is_steps ? cell.step : cell.t_s;
    if (!(at <= window.to_s)) {
      continue;
    }
    if (at < window.from_s) {
      points.clear();  // the last of them counts
    }
    points.push_back(
        {std::max(at, window.from_s), cell.min_bytes, cell.max_bytes,
         std::isnan(cell.step) ? std::nullopt : std::optional(std::llround(cell.step))});
  }
  if (!points.empty() && points.back().t_s < window.to_s) {
    points.push_back(points.back());
    points.back().t_s = window.to_s;
  }
  return points;
}

std::string title_of(std::string_view what, const RunHistory& history, const ViewState& state,
                     const Window& window) {
  const std::string zoom = zoom_words(state.zoom, history.info().time_is_steps);
  if (state.zoom == Zoom::kAll) {
    return fmt::format("{} of the tree, {}", what, zoom);
  }
  return state.back_s > 0.0 ? fmt::format("{} of the tree, {} until {}", what, zoom,
                                          history.time_format(window.to_s))
                            : fmt::format("{} of the tree, last {}", what, zoom);
}

// The low-water marks that the verdict on the tree rests on, drawn on to its right edge.
std::vector<HistoryPoint> floor_of(const tracker::JudgedRun& judged, const Window& window,
                                   bool time_is_steps) {
  std::vector<HistoryPoint> floor;
  for (const tracker::TrackVerdict& judged_curve : judged.verdict->tracks) {
    if (judged.run.tracks[judged_curve.track].kind != tracker::TrackKind::kTree) {
      continue;
    }
    for (const tracker::FloorPoint& point : judged_curve.series.floor) {
      if (const auto at = time_is_steps ? point.at.step : point.at.t_s) {
        floor.push_back({*at, point.floor_bytes, point.ceiling_bytes});
      }
    }
    break;
  }
  // What begins before the window reaches into it.
  const auto first = std::find_if(floor.begin(), floor.end(),
                                  [&](const HistoryPoint& p) { return p.t_s > window.from_s; });
  if (first - floor.begin() > 1) {
    floor.erase(floor.begin(), first - 1);
  }
  std::erase_if(floor, [&](const HistoryPoint& point) { return point.t_s > window.to_s; });
  return floor;
}

}  // namespace

Window window_of(const RunHistory& history, const ViewState& state) {
  const auto seconds = zoom_seconds(state.zoom);
  const double now = history.now_s();
  if (!seconds) {
    return {0.0, std::max(now, 1.0)};
  }
  const double to = std::max(now - state.back_s, std::min(now, *seconds));
  return {to - *seconds, to};
}

TimelineModel build_timeline(const RunHistory& history,
                             const std::optional<tracker::JudgedRun>& judged,
                             const ViewState& state, const ScreenInputs& inputs) {
  TimelineModel timeline;
  const Window window = window_of(history, state);
  timeline.from_s = window.from_s;
  timeline.to_s = window.to_s;
  timeline.time_is_steps = history.info().time_is_steps;
  timeline.is_focused = state.focus == Focus::kTimeline;
  timeline.range = state.range;
  const tracker::TrackVerdict* const other = other_curve(history, judged);
  const std::string_view kept = history.tree().footprint_bytes ? "footprint" : "rss";
  if (other != nullptr) {
    timeline.title = title_of(is_gpu(other->metric) ? "GPU memory" : metric_name(other->metric),
                              history, state, window);
    timeline.points = points_of(judged->run.tracks[other->track].of(other->metric), window,
                                timeline.time_is_steps);
  } else {
    timeline.title = title_of(kept, history, state, window);
    timeline.points =
        inputs.recorded.empty() ? history.timeline(window.from_s, window.to_s) : inputs.recorded;
  }
  if (!timeline.points.empty()) {
    timeline.from_step = timeline.points.front().step;
    timeline.to_step = timeline.points.back().step;
  }
  if (judged && judged->verdict) {
    timeline.floor = floor_of(*judged, window, timeline.time_is_steps);
  }
  if (other != nullptr && is_gpu(other->metric)) {
    timeline.limit_bytes = judged->run.limit_bytes;
  } else if (history.info().limit_bytes) {
    timeline.limit_bytes = static_cast<double>(*history.info().limit_bytes);
  }
  for (const HistoryMark& mark : history.marks()) {
    if (mark.t_s >= window.from_s && mark.t_s <= window.to_s) {
      timeline.marks.push_back(mark_of(mark));
      timeline.last_event =
          fmt::format("{} {}", history.time_format(mark.t_s), shorten(escape_text(mark.text), 80));
    }
  }
  for (const HistoryPhase& phase : history.phases()) {
    const double to = phase.to_s.value_or(history.now_s());
    if (to >= window.from_s && phase.from_s <= window.to_s) {
      timeline.phases.push_back(
          {phase.from_s, to, shorten(escape_text(phase.name), 24), phase.kind});
    }
  }
  return timeline;
}

}  // namespace tidemark::dashboard
