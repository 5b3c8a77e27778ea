// SPDX-License-Identifier: Apache-2.0
#include "tracker/compare/run_diff.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tidemark::tracker {
namespace {

constexpr int kPlaces = 4;

// A tree of one run: its curve and the verdict on it.
struct TreeCurve {
  const Series& series;
  const SeriesVerdict& verdict;
};

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
std::optional<double> floor_at(const SeriesVerdict& judged, const Alignment& alignment,
                               double place, std::size_t side) {
  std::optional<double> floor;
  for (const FloorPoint& point : judged.floor) {
    const std::optional<double>& at = alignment.axis == Axis::kSteps ? point.at.step : point.at.t_s;
    if (at && *at - alignment.first[side] <= place) {
      floor = point.floor_bytes;
    }
  }
  return floor;
}

// On steps when both were judged on steps, else on time; nullopt when there is no common axis.
std::optional<Alignment> align(const TreeCurve& a, const TreeCurve& b) {
  const bool on_steps = a.verdict.axis == Axis::kSteps && b.verdict.axis == Axis::kSteps;
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

// Floors of both at a few places of the common part.
std::vector<FloorPair> floors_side_by_side(const TreeCurve& a, const TreeCurve& b,
                                           const Alignment& alignment) {
  std::vector<FloorPair> pairs;
  if (alignment.to <= alignment.from) {
    return pairs;  // one place in common is no course
  }
  for (int i = 1; i <= kPlaces; ++i) {
    const double place = alignment.from + (alignment.to - alignment.from) * i / kPlaces;
    pairs.push_back({place, floor_at(a.verdict, alignment, place, 0),
                     floor_at(b.verdict, alignment, place, 1)});
  }
  return pairs;
}

// Highest value of one of the two (`side` 0 or 1) in the common part.
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

constexpr double kSigmas = 4.0;
constexpr double kNoticeable = 0.02;       // of a floor or peak: less is not worth a word
constexpr double kNoticeableRise = 0.01;   // of the floor, over the common part, by a rate
constexpr double kNoticeableSpike = 0.10;  // of a height or distance: sampling misses the tops
constexpr double kNoticeableRole = 0.01;   // of the floor of the whole tree

struct Side {
  const RunTracks& tracks;
  const RunVerdict& verdict;
  Metric metric;

  // nullptr: not judged.
  const SeriesVerdict* verdict_of(TrackKind kind, Role role) const {
    for (const TrackVerdict& one : verdict.tracks) {
      const Track& track = tracks.tracks[one.track];
      if (one.metric == metric && track.kind == kind &&
          (kind == TrackKind::kTree || track.role == role)) {
        return &one.series;
      }
    }
    return nullptr;
  }
  const SeriesVerdict* verdict_of_role(const Track& track) const {
    const SeriesVerdict* const of_role = verdict_of(TrackKind::kRole, track.role);
    return of_role == nullptr && track.most_processes == 1
               ? verdict_of(TrackKind::kProcess, track.role)
               : of_role;
  }
  const Track* track_of(TrackKind kind, Role role) const {
    const auto found =
        std::find_if(tracks.tracks.begin(), tracks.tracks.end(), [&](const Track& t) {
          return t.kind == kind && (kind != TrackKind::kRole || t.role == role);
        });
    return found == tracks.tracks.end() ? nullptr : &*found;
  }
};

double sigma_of(const SeriesVerdict& judged) {
  for (const Evidence& evidence : judged.evidence) {
    if (evidence.kind == EvidenceKind::kNoise) {
      return evidence.value;
    }
  }
  return 0.0;
}

double common_sigma(const SeriesVerdict& a, const SeriesVerdict& b) {
  return std::hypot(sigma_of(a), sigma_of(b));
}

// `less_is_better`: memory; false: the time between two spikes.
Change change_of(const DiffRow& row, bool less_is_better = true) {
  const auto difference = row.difference();
  if (!difference || !row.noise) {
    return Change::kUnclear;
  }
  if (std::abs(*difference) <= *row.noise) {
    return Change::kSame;
  }
  return (*difference < 0) == less_is_better ? Change::kBetter : Change::kWorse;
}

bool is_settled(const SeriesVerdict& judged) {
  return !judged.undetermined && judged.verdict != Verdict::kLeak &&
         judged.verdict != Verdict::kGrowing;
}

DiffRow settled_floor(const SeriesVerdict& a, const SeriesVerdict& b) {
  DiffRow row;
  row.what = DiffWhat::kSettledFloor;
  if (is_settled(a)) {
    row.a.value = a.last_floor_bytes;
  }
  if (is_settled(b)) {
    row.b.value = b.last_floor_bytes;
  }
  row.noise = std::max(kSigmas * common_sigma(a, b), kNoticeable * a.last_floor_bytes);
  row.change = change_of(row);
  return row;
}

// Growth after warm-up. Of a floor that stands still it is none, known as well as the smallest leak
// that would have been seen.
DiffValue growth_value(const SeriesVerdict& judged, Axis axis) {
  const bool steps = axis == Axis::kSteps;
  if (const Pattern* const pattern =
          judged.find({PatternKind::kLeak, PatternKind::kGrowth, PatternKind::kDrift})) {
    const GrowthRate& rate = pattern->rate;
    return steps ? DiffValue{rate.bytes_per_step, rate.low_bytes_per_step, rate.high_bytes_per_step}
                 : DiffValue{rate.bytes_per_s, rate.low_bytes_per_s, rate.high_bytes_per_s};
  }
  const std::optional<double>& detectable =
      steps ? judged.smallest_detectable_per_step : judged.smallest_detectable_per_s;
  if (!is_settled(judged) || !detectable) {
    return {};
  }
  return {0.0, -*detectable, *detectable};
}

std::optional<double> half_width(const DiffValue& value) {
  return value.low && value.high ? std::optional((*value.high - *value.low) / 2) : std::nullopt;
}

DiffRow growth_rate(const SeriesVerdict& a, const SeriesVerdict& b, const Alignment& alignment) {
  DiffRow row;
  row.what = DiffWhat::kGrowthRate;
  row.a = growth_value(a, alignment.axis);
  row.b = growth_value(b, alignment.axis);
  const auto width_a = half_width(row.a);
  const auto width_b = half_width(row.b);
  const double length = alignment.to - alignment.from;
  if (width_a && width_b && length > 0) {
    row.noise =
        std::max(std::hypot(*width_a, *width_b), kNoticeableRise * a.last_floor_bytes / length);
  }
  row.change = change_of(row);
  // A run so short that it could hide all of the other's growth does not show that they are alike.
  const double faster =
      std::max(std::abs(row.a.value.value_or(0.0)), std::abs(row.b.value.value_or(0.0)));
  if (row.change == Change::kSame && faster > 0 && std::hypot(*width_a, *width_b) > faster) {
    row.change = Change::kUnclear;
  }
  return row;
}

DiffRow peak(const TreeCurve& a, const TreeCurve& b, const std::optional<Alignment>& alignment) {
  DiffRow row;
  row.what = DiffWhat::kPeak;
  row.a.value = alignment ? peak_bytes(a, *alignment, 0) : a.verdict.max_bytes;
  row.b.value = alignment ? peak_bytes(b, *alignment, 1) : b.verdict.max_bytes;
  row.noise = std::max(kSigmas * common_sigma(a.verdict, b.verdict),
                       kNoticeable * row.a.value.value_or(0.0));
  row.change = change_of(row);
  return row;
}

// Spikes that only one of the runs has.
Change change_of_presence(const Pattern* a, const Pattern* b) {
  if ((a == nullptr) == (b == nullptr)) {
    return Change::kSame;
  }
  return b == nullptr ? Change::kBetter : Change::kWorse;
}

DiffRow spike_height(const SeriesVerdict& a, const SeriesVerdict& b) {
  const Pattern* const spikes_a = a.find(PatternKind::kSpikes);
  const Pattern* const spikes_b = b.find(PatternKind::kSpikes);
  DiffRow row;
  row.what = DiffWhat::kSpikeHeight;
  if (spikes_a != nullptr) {
    row.a.value = spikes_a->height_bytes;
  }
  if (spikes_b != nullptr) {
    row.b.value = spikes_b->height_bytes;
  }
  if (!row.difference()) {
    row.change = change_of_presence(spikes_a, spikes_b);
    return row;
  }
  row.noise = std::max(kSigmas * common_sigma(a, b), kNoticeableSpike * *row.a.value);
  row.change = change_of(row);
  return row;
}

// Distance of the spikes: the period where they are regular, else the mean.
std::optional<double> distance(const Pattern* spikes, Axis axis) {
  if (spikes == nullptr || spikes->count < 2) {
    return std::nullopt;
  }
  const bool steps = axis == Axis::kSteps;
  if (const auto& period = steps ? spikes->period_steps : spikes->period_s; period) {
    return period;
  }
  const auto& from = steps ? spikes->from.step : spikes->from.t_s;
  const auto& to = steps ? spikes->to.step : spikes->to.t_s;
  if (!from || !to) {
    return std::nullopt;
  }
  return (*to - *from) / static_cast<double>(spikes->count - 1);
}

// nullopt: one of the runs has no two spikes.
std::optional<DiffRow> spike_every(const SeriesVerdict& a, const SeriesVerdict& b, Axis axis) {
  const Pattern* const spikes_a = a.find(PatternKind::kSpikes);
  const Pattern* const spikes_b = b.find(PatternKind::kSpikes);
  DiffRow row;
  row.what = DiffWhat::kSpikeEvery;
  row.a.value = distance(spikes_a, axis);
  row.b.value = distance(spikes_b, axis);
  if (!row.difference()) {
    return std::nullopt;
  }
  const auto fewer = static_cast<double>(std::min(spikes_a->count, spikes_b->count));
  row.noise = *row.a.value * std::max(kNoticeableSpike, 1.0 / std::sqrt(fewer));
  row.change = change_of(row, /*less_is_better=*/false);
  return row;
}

// What a role holds at the end. Of a role with one process only the process was judged; what was
// too small to be judged stands at its median.
DiffValue role_value(const Side& side, Role role) {
  const Track* const track = side.track_of(TrackKind::kRole, role);
  if (track == nullptr) {
    return {0.0, std::nullopt, std::nullopt};  // no process, no memory
  }
  const SeriesVerdict* const judged = side.verdict_of_role(*track);
  if (judged != nullptr) {
    return {judged->last_floor_bytes, std::nullopt, std::nullopt};
  }
  std::vector<double> levels;
  for (const Cell& cell : track->of(side.metric).cells()) {
    levels.push_back(cell.min_bytes);
  }
  if (levels.empty()) {
    return {};
  }
  const auto middle = levels.begin() + static_cast<std::ptrdiff_t>(levels.size() / 2);
  std::nth_element(levels.begin(), middle, levels.end());
  return {*middle, std::nullopt, std::nullopt};
}

double role_sigma(const Side& side, Role role) {
  const Track* const track = side.track_of(TrackKind::kRole, role);
  const SeriesVerdict* const judged = track == nullptr ? nullptr : side.verdict_of_role(*track);
  return judged == nullptr ? 0.0 : sigma_of(*judged);
}

// nullopt: neither run has processes of this role.
std::optional<DiffRow> role_row(const Side& a, const Side& b, Role role, double tree_floor) {
  const Track* const track_a = a.track_of(TrackKind::kRole, role);
  const Track* const track_b = b.track_of(TrackKind::kRole, role);
  if (track_a == nullptr && track_b == nullptr) {
    return std::nullopt;
  }
  DiffRow row;
  row.what = DiffWhat::kRole;
  row.role = role;
  row.processes = {track_a != nullptr ? track_a->most_processes : 0,
                   track_b != nullptr ? track_b->most_processes : 0};
  row.a = role_value(a, role);
  row.b = role_value(b, role);
  row.noise = std::max({kSigmas * std::hypot(role_sigma(a, role), role_sigma(b, role)),
                        kNoticeable * row.a.value.value_or(0.0), kNoticeableRole * tree_floor});
  row.change = change_of(row);
  return row;
}

DiffSide side_of(const RunVerdict& verdict, const SeriesVerdict& tree) {
  DiffSide side;
  side.verdict = verdict.verdict;
  side.undetermined = verdict.answer().series.undetermined;
  side.confidence = verdict.answer().series.confidence;
  side.samples = tree.samples;
  const Pattern* const spikes = tree.find(PatternKind::kSpikes);
  side.spikes = spikes != nullptr ? spikes->count : 0;
  side.settled = is_settled(tree);
  return side;
}

Change verdict_change(const DiffSide& a, const DiffSide& b) {
  if (a.undetermined || b.undetermined) {
    return Change::kUnclear;
  }
  const bool leaks_a = a.verdict == Verdict::kLeak;
  const bool leaks_b = b.verdict == Verdict::kLeak;
  if (leaks_a == leaks_b) {
    return Change::kSame;
  }
  return leaks_a ? Change::kBetter : Change::kWorse;
}

// A leak that came or went outweighs all the rest. Roles are parts of what the other rows say.
Change overall_change(const RunDiff& diff) {
  if (diff.verdict == Change::kBetter || diff.verdict == Change::kWorse) {
    return diff.verdict;
  }
  const auto any = [&](Change change) {
    return std::any_of(diff.rows.begin(), diff.rows.end(), [&](const DiffRow& row) {
      return row.what != DiffWhat::kRole && row.change == change;
    });
  };
  const bool better = any(Change::kBetter);
  const bool worse = any(Change::kWorse);
  if (better && worse) {
    return Change::kMixed;
  }
  if (better || worse) {
    return better ? Change::kBetter : Change::kWorse;
  }
  return diff.verdict == Change::kUnclear ? Change::kUnclear : Change::kSame;
}

}  // namespace

std::optional<double> DiffRow::difference() const {
  return a.value && b.value ? std::optional(*b.value - *a.value) : std::nullopt;
}

const DiffRow* RunDiff::find(DiffWhat what) const {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const DiffRow& row) { return row.what == what; });
  return found == rows.end() ? nullptr : &*found;
}

std::optional<Metric> common_metric(const RunTracks& a, const RunTracks& b) {
  const auto has = [](const RunTracks& run, Metric metric) {
    return std::any_of(run.tracks.begin(), run.tracks.end(), [&](const Track& track) {
      return track.kind == TrackKind::kTree && !track.of(metric).empty();
    });
  };
  for (const Metric metric :
       {Metric::kFootprint, Metric::kPss, Metric::kRss, Metric::kUss, Metric::kGpu}) {
    if (has(a, metric) && has(b, metric)) {
      return metric;
    }
  }
  return std::nullopt;
}

std::optional<RunDiff> compare_runs(const JudgedRun& a, const JudgedRun& b, Metric metric) {
  if (!a.verdict || !b.verdict) {
    return std::nullopt;
  }
  const Side side_a{a.run, *a.verdict, metric};
  const Side side_b{b.run, *b.verdict, metric};
  const SeriesVerdict* const verdict_a = side_a.verdict_of(TrackKind::kTree, Role::kOther);
  const SeriesVerdict* const verdict_b = side_b.verdict_of(TrackKind::kTree, Role::kOther);
  if (verdict_a == nullptr || verdict_b == nullptr) {
    return std::nullopt;
  }
  const TreeCurve curve_a{side_a.track_of(TrackKind::kTree, Role::kOther)->of(metric), *verdict_a};
  const TreeCurve curve_b{side_b.track_of(TrackKind::kTree, Role::kOther)->of(metric), *verdict_b};

  RunDiff diff;
  diff.metric = metric;
  diff.alignment = align(curve_a, curve_b);
  diff.a = side_of(*a.verdict, *verdict_a);
  diff.b = side_of(*b.verdict, *verdict_b);
  diff.verdict = verdict_change(diff.a, diff.b);
  diff.rows.push_back(settled_floor(*verdict_a, *verdict_b));
  if (diff.alignment) {
    diff.rows.push_back(growth_rate(*verdict_a, *verdict_b, *diff.alignment));
    diff.floors = floors_side_by_side(curve_a, curve_b, *diff.alignment);
  }
  diff.rows.push_back(peak(curve_a, curve_b, diff.alignment));
  if (diff.a.spikes + diff.b.spikes > 0) {
    diff.rows.push_back(spike_height(*verdict_a, *verdict_b));
    if (auto row = diff.alignment ? spike_every(*verdict_a, *verdict_b, diff.alignment->axis)
                                  : std::nullopt) {
      diff.rows.push_back(*row);
    }
  }
  for (int i = 0; i < kRoleCount; ++i) {
    if (auto row = role_row(side_a, side_b, static_cast<Role>(i), verdict_a->last_floor_bytes)) {
      diff.rows.push_back(*row);
    }
  }
  diff.overall = overall_change(diff);
  return diff;
}

std::string_view change_name(Change change) {
  switch (change) {
    case Change::kSame:
      return "same";
    case Change::kBetter:
      return "better";
    case Change::kWorse:
      return "worse";
    case Change::kMixed:
      return "mixed";
    case Change::kUnclear:
      break;
  }
  return "unclear";
}

std::string_view diff_what_name(DiffWhat what) {
  switch (what) {
    case DiffWhat::kSettledFloor:
      return "settled_floor";
    case DiffWhat::kGrowthRate:
      return "growth_rate";
    case DiffWhat::kPeak:
      return "peak";
    case DiffWhat::kSpikeHeight:
      return "spike_height";
    case DiffWhat::kSpikeEvery:
      return "spike_every";
    case DiffWhat::kRole:
      break;
  }
  return "role";
}

}  // namespace tidemark::tracker
