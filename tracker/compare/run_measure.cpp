// SPDX-License-Identifier: Apache-2.0
#include "tracker/compare/run_measure.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "tracker/curve/forecast.h"
#include "tracker/curve/patterns.h"
#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

const Pattern* growth_of(const Reading& reading) {
  for (const PatternKind kind : {PatternKind::kLeak, PatternKind::kGrowth, PatternKind::kDrift}) {
    if (const Pattern* const pattern = reading.find(kind)) {
      return pattern;
    }
  }
  return nullptr;
}

double place_of(const FloorPoint& point, const Moment& moment, Axis axis) {
  return axis == Axis::kSteps ? moment.step.value_or(point.x) : moment.t_s.value_or(point.x);
}

// Of growth that may end or not, what it does after the allowance: what came before was expected.
// nullopt: the allowance lasts too long to tell.
std::optional<GrowthRate> rate_after_allowance(const Reading& reading) {
  if (!reading.allowance_end || reading.floor.empty()) {
    return std::nullopt;
  }
  std::vector<double> x;
  std::vector<double> bytes;
  const FloorPoint* first = nullptr;
  for (const FloorPoint& point : reading.floor) {
    if (place_of(point, point.at, reading.axis) >=
        place_of(point, *reading.allowance_end, reading.axis)) {
      first = first == nullptr ? &point : first;
      x.push_back(point.x);
      bytes.push_back(point.floor_bytes);
    }
  }
  if (x.size() < kFewestBlocks) {
    return std::nullopt;
  }
  const FloorPoint& last = reading.floor.back();
  const double span = last.x - first->x;
  Pace pace;
  if (first->at.t_s && last.at.t_s) {
    pace.seconds_per_x = (*last.at.t_s - *first->at.t_s) / span;
  }
  if (first->at.step && last.at.step) {
    pace.steps_per_x = (*last.at.step - *first->at.step) / span;
  }
  const GrowthEstimate growth = estimate_growth(x, bytes);
  return rate_on_axes(pace, growth.slope, growth.low, growth.high);
}

MeasuredGrowth measure_growth(const Reading& reading) {
  MeasuredGrowth growth;
  growth.verdict = reading.verdict;
  growth.undetermined = reading.undetermined;
  growth.needs = reading.needs;
  growth.smallest_detectable_per_s = reading.smallest_detectable_per_s;
  growth.smallest_detectable_per_step = reading.smallest_detectable_per_step;
  growth.axis = reading.axis;
  if (const Pattern* const pattern = growth_of(reading)) {
    growth.kind = pattern->kind;
    growth.rate = pattern->rate;
    if (pattern->kind == PatternKind::kGrowth) {
      growth.rate = rate_after_allowance(reading).value_or(pattern->rate);
    }
  }
  growth.knows_steps = reading.axis == Axis::kSteps || growth.rate.bytes_per_step ||
                       growth.smallest_detectable_per_step;
  return growth;
}

// The curve of the whole tree; where there is none, the one that gave the answer.
const TrackReading& whole(const RunTracks& run, const RunVerdict& verdict) {
  const auto tree = std::find_if(verdict.readings.begin(), verdict.readings.end(),
                                 [&](const TrackReading& reading) {
                                   return run.tracks[reading.track].kind == TrackKind::kTree;
                                 });
  return tree == verdict.readings.end() ? verdict.answer() : *tree;
}

// Where the floor had come to. The very last of it may be a shell that is left alone for a moment.
double plateau_of(const Reading& reading) {
  const std::size_t count = reading.floor.size();
  std::vector<double> last;
  for (std::size_t i = count - count / 3; i < count; ++i) {
    last.push_back(reading.floor[i].floor_bytes);
  }
  return std::max(reading.last_floor_bytes, median(std::move(last)));
}

}  // namespace

std::optional<RunMeasure> measure_run(const RunTracks& run,
                                      const std::optional<RunVerdict>& verdict) {
  if (!verdict) {
    return std::nullopt;
  }
  const TrackReading& tree = whole(run, *verdict);
  RunMeasure measure;
  measure.growth = measure_growth(verdict->answer().reading);
  measure.plateau_bytes = plateau_of(tree.reading);
  measure.has_settled = !tree.reading.undetermined && tree.reading.verdict < Verdict::kGrowing;
  measure.peak_bytes = tree.reading.max_bytes;
  for (const Cell& cell : run.tracks[tree.track].of(tree.metric).cells()) {
    measure.peak_bytes = std::max(measure.peak_bytes, cell.max_bytes);
  }
  measure.most_processes = run.tracks[tree.track].most_processes;
  return measure;
}

}  // namespace tidemark::tracker
