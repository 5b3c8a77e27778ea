// SPDX-License-Identifier: Apache-2.0
#include "tracker/compare/run_alignment.h"

#include <algorithm>
#include <cmath>

namespace tidemark::tracker {
namespace {

constexpr int kPlaces = 4;

struct Span {
  double first = 0.0;
  double last = 0.0;

  double length() const { return last - first; }
};

double place_of(const Cell& cell, Axis axis) { return axis == Axis::kSteps ? cell.step : cell.t_s; }

std::optional<Span> span_of(const Series& series, Axis axis) {
  std::optional<Span> span;
  for (const Cell& cell : series.cells()) {
    const double place = place_of(cell, axis);
    if (std::isnan(place)) {
      continue;
    }
    if (!span) {
      span = Span{place, place};
    }
    span->first = std::min(span->first, place);
    span->last = std::max(span->last, place);
  }
  return span;
}

std::optional<Alignment> align_on(const Span& a, const Span& b, Axis axis) {
  Alignment alignment;
  alignment.axis = axis;
  alignment.from = std::max(a.first, b.first);
  alignment.to = std::min(a.last, b.last);
  const double shorter = std::min(a.length(), b.length());
  if (axis == Axis::kSteps && alignment.to - alignment.from < 0.5 * shorter) {
    alignment.from_start = true;
    alignment.first = {a.first, b.first};
    alignment.from = 0.0;
    alignment.to = shorter;
  }
  return alignment.to >= alignment.from ? std::optional(alignment) : std::nullopt;
}

// The floor of the stretch that `place` lies in.
std::optional<double> floor_at(const Reading& reading, const Alignment& alignment, double place,
                               std::size_t side) {
  std::optional<double> floor;
  for (const FloorPoint& point : reading.floor) {
    const std::optional<double>& at = alignment.axis == Axis::kSteps ? point.at.step : point.at.t_s;
    if (at && *at - alignment.first[side] <= place) {
      floor = point.floor_bytes;
    }
  }
  return floor;
}

}  // namespace

std::optional<Alignment> align(const TreeCurve& a, const TreeCurve& b) {
  const bool on_steps = a.reading.axis == Axis::kSteps && b.reading.axis == Axis::kSteps;
  for (const Axis axis : {Axis::kSteps, Axis::kTime}) {
    if (axis == Axis::kSteps && !on_steps) {
      continue;
    }
    const auto span_a = span_of(a.series, axis);
    const auto span_b = span_of(b.series, axis);
    if (span_a && span_b) {
      return align_on(*span_a, *span_b, axis);
    }
  }
  return std::nullopt;
}

std::vector<FloorPair> floors_side_by_side(const TreeCurve& a, const TreeCurve& b,
                                           const Alignment& alignment) {
  std::vector<FloorPair> pairs;
  if (alignment.to <= alignment.from) {
    return pairs;  // one place in common is no course
  }
  for (int i = 1; i <= kPlaces; ++i) {
    const double place = alignment.from + (alignment.to - alignment.from) * i / kPlaces;
    pairs.push_back({place, floor_at(a.reading, alignment, place, 0),
                     floor_at(b.reading, alignment, place, 1)});
  }
  return pairs;
}

std::optional<double> peak_bytes(const TreeCurve& curve, const Alignment& alignment,
                                 std::size_t side) {
  std::optional<double> peak;
  bool started = false;
  for (const Cell& cell : curve.series.cells()) {
    const double place = place_of(cell, alignment.axis) - alignment.first[side];
    started = started || !std::isnan(place);
    // What comes before the first step belongs to the start of the run and counts.
    const bool inside =
        std::isnan(place) ? !started : place >= alignment.from && place <= alignment.to;
    if (inside) {
      peak = std::max(peak.value_or(0.0), cell.max_bytes);
    }
  }
  return peak;
}

}  // namespace tidemark::tracker
