// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "common/units.h"
#include "dashboard/model_builder.h"

namespace tidemark::dashboard {
namespace {

// The lowest and highest value of what a column of the plot stands for.
struct Values {
  double low = 0.0;
  double high = 0.0;

  void include(double from, double to) {
    low = std::min(low, from);
    high = std::max(high, to);
  }
  // "505 MiB", or "441 MiB to 505 MiB".
  std::string text() const {
    const std::string from = format_bytes(low);
    const std::string to = format_bytes(high);
    return from == to ? to : fmt::format("{} to {}", from, to);
  }
};

// A value holds until the next one.
std::optional<Values> values_in(const std::vector<HistoryPoint>& points, const Window& column) {
  std::optional<Values> values;
  bool is_inside = false;
  for (const HistoryPoint& point : points) {
    if (point.t_s >= column.to_s) {
      break;
    }
    if (is_inside) {
      values->include(point.min_bytes, point.max_bytes);
    } else {
      values = {point.min_bytes, point.max_bytes};
    }
    is_inside = is_inside || point.t_s >= column.from_s;
  }
  return values;
}

std::optional<std::int64_t> step_at(const std::vector<HistoryPoint>& points, double t_s) {
  std::optional<std::int64_t> step;
  for (const HistoryPoint& point : points) {
    if (point.t_s > t_s) {
      break;
    }
    step = point.step;
  }
  return step;
}

// Of the selected process, as far as its own curve is kept.
std::string process_text(const RunHistory& history, const TreeModel& tree, const Window& column) {
  if (tree.selected >= tree.rows.size() || tree.rows[tree.selected].is_role) {
    return "";
  }
  const TreeRow& row = tree.rows[tree.selected];
  const auto process = history.processes().find(row.id.key);
  if (process == history.processes().end()) {
    return "";
  }
  std::vector<HistoryPoint> points;
  for (const tracker::Cell& cell : process->second.footprint.cells()) {
    points.push_back({cell.place(), cell.min_bytes, cell.max_bytes});
  }
  const auto values = values_in(points, column);
  return fmt::format("{} {}", row.name, values ? values->text() : "not started yet");
}

// Of the tree.
const tracker::Pattern* spikes_of(const std::optional<tracker::JudgedRun>& judged) {
  if (judged && judged->verdict) {
    for (const tracker::TrackVerdict& track : judged->verdict->tracks) {
      if (judged->run.tracks[track.track].kind == tracker::TrackKind::kTree) {
        return track.series.find(tracker::PatternKind::kSpikes);
      }
    }
  }
  return nullptr;
}

// How far the curve stands above its low-water line there; a spike where that is what it is.
void add_floor(TimelineModel& timeline, const Values& values, const Window& column,
               const tracker::Pattern* spikes) {
  const auto floor = values_in(timeline.floor, column);
  if (!floor) {
    return;
  }
  const double above = values.high - floor->low;
  constexpr double kLikeOne = 0.5;  // of the usual height
  if (spikes != nullptr && above >= kLikeOne * spikes->height_bytes) {
    timeline.at_cursor.push_back(fmt::format("spike of {}", format_bytes(above)));
  }
  timeline.at_cursor.push_back(fmt::format("floor {}", format_bytes(floor->low)));
}

void add_events(TimelineModel& timeline, const RunHistory& history, const Window& column) {
  constexpr std::size_t kMost = 2;
  std::size_t count = 0;
  for (const HistoryMark& mark : history.marks()) {
    if (mark.t_s >= column.from_s && mark.t_s < column.to_s && count++ < kMost) {
      timeline.at_cursor.push_back(shorten(escape_text(mark.text), 60));
    }
  }
}

// The last column has the newest sample.
Window column_at(const TimelineModel& timeline, double t_s, std::size_t columns) {
  const auto last = static_cast<double>(std::max<std::size_t>(1, columns)) - 1.0;
  const double width_s = (timeline.to_s - timeline.from_s) / (last + 1.0);
  const double index = std::min(std::floor((t_s - timeline.from_s) / width_s), last);
  const double from_s = timeline.from_s + index * width_s;
  return {from_s, index < last ? from_s + width_s : std::nextafter(timeline.to_s, HUGE_VAL)};
}

}  // namespace

void add_cursor(TimelineModel& timeline, const RunHistory& history,
                const std::optional<tracker::JudgedRun>& judged, const ViewState& state,
                const TreeModel& tree, std::size_t plot_columns) {
  if (!state.cursor_s || *state.cursor_s < timeline.from_s || *state.cursor_s > timeline.to_s) {
    return;
  }
  timeline.cursor_s = state.cursor_s;
  const Window column = column_at(timeline, *state.cursor_s, plot_columns);
  timeline.at_cursor.push_back(history.time_format(*state.cursor_s));
  const auto values = values_in(timeline.points, column);
  if (!values) {
    timeline.at_cursor.emplace_back("no sample");
    return;
  }
  timeline.at_cursor.push_back("tree " + values->text());
  if (const auto step = step_at(timeline.points, *state.cursor_s);
      step && !timeline.time_is_steps) {
    timeline.at_cursor.push_back(fmt::format("step {}", *step));
  }
  if (std::string text = process_text(history, tree, column); !text.empty()) {
    timeline.at_cursor.push_back(std::move(text));
  }
  add_floor(timeline, *values, column, spikes_of(judged));
  add_events(timeline, history, column);
}

}  // namespace tidemark::dashboard
