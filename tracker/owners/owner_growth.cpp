// SPDX-License-Identifier: Apache-2.0
#include "tracker/owners/owner_growth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "tracker/curve/statistics.h"

namespace tidemark::tracker {
namespace {

constexpr std::size_t kEnoughForJudge = 6;  // looks; with fewer the curve has no rate of its own
constexpr double kSame = 0.1;               // rates that differ by less are one
constexpr double kStillRate = 0.1;          // of the mean rate: it has stopped
constexpr double kSlowingRate = 0.5;        // the last rate against the first one
constexpr double kMoreThanAnEpoch = 1.25;

// Of two neighbouring points.
struct Stretch {
  double seconds = 0.0;
  double steps = kUnknown;
  double bytes = 0.0;
  std::optional<double> entries;
  std::size_t first_look = 0;
  std::size_t last_look = 0;
};

// What grows held nothing new at the first look, whether it was named then or not.
std::vector<OwnerPoint> points_of(const LookedProcess& process, const OwnerTrack& track,
                                  const RunOwners& run) {
  std::vector<OwnerPoint> points = track.points;
  if (!points.empty() && points.front().look > 0 && track.record.kind != OwnerKind::kName) {
    const HeapLook& first = process.looks.front();
    OwnerPoint start;
    start.t_s = first.t_s;
    start.entries = track.last.first_entries;
    start.step = run.steps.at(first.t_s);
    if (std::isnan(start.step) && run.steps.empty() && first.step) {
      start.step = static_cast<double>(*first.step);
    }
    points.insert(points.begin(), start);
  }
  return points;
}

std::vector<Stretch> stretches_of(const std::vector<OwnerPoint>& points) {
  std::vector<Stretch> stretches;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const OwnerPoint& from = points[i - 1];
    const OwnerPoint& to = points[i];
    Stretch& stretch = stretches.emplace_back();
    stretch.seconds = to.t_s - from.t_s;
    stretch.steps = to.step - from.step;
    stretch.bytes = to.grown_bytes - from.grown_bytes;
    if (from.entries && to.entries) {
      stretch.entries = static_cast<double>(*to.entries) - static_cast<double>(*from.entries);
    }
    stretch.first_look = from.look;
    stretch.last_look = to.look;
  }
  return stretches;
}

// Steps count where they went on in each stretch.
bool has_steps(const std::vector<Stretch>& stretches) {
  return !stretches.empty() && std::all_of(stretches.begin(), stretches.end(),
                                           [](const Stretch& each) { return each.steps > 0.0; });
}

struct Range {
  double low = 0.0;
  double mean = 0.0;
  double high = 0.0;
};

// Of `amount` per `length`, where both are known.
template <typename Amount, typename Length>
std::optional<Range> rate_over(const std::vector<Stretch>& stretches, Amount amount,
                               Length length) {
  std::optional<Range> range;
  double sum = 0.0;
  double whole = 0.0;
  for (const Stretch& each : stretches) {
    const std::optional<double> amount_of = amount(each);
    const double length_of = length(each);
    if (!amount_of || !(length_of > 0.0)) {
      continue;
    }
    const double rate = *amount_of / length_of;
    range = range ? Range{std::min(range->low, rate), 0.0, std::max(range->high, rate)}
                  : Range{rate, 0.0, rate};
    sum += *amount_of;
    whole += length_of;
  }
  if (range) {
    range->mean = sum / whole;
  }
  return range;
}

std::optional<double> bytes_in(const Stretch& stretch) { return stretch.bytes; }
std::optional<double> entries_in(const Stretch& stretch) { return stretch.entries; }
double seconds_in(const Stretch& stretch) { return stretch.seconds; }
double steps_in(const Stretch& stretch) { return stretch.steps; }

// Of so few looks that the curve has no rate with an interval.
GrowthRate rate_of_few(const std::vector<Stretch>& stretches) {
  GrowthRate rate;
  if (const auto per_s = rate_over(stretches, bytes_in, seconds_in)) {
    rate.bytes_per_s = per_s->mean;
    rate.low_bytes_per_s = per_s->low;
    rate.high_bytes_per_s = per_s->high;
  }
  if (const auto per_step = rate_over(stretches, bytes_in, steps_in);
      per_step && has_steps(stretches)) {
    rate.bytes_per_step = per_step->mean;
    rate.low_bytes_per_step = per_step->low;
    rate.high_bytes_per_step = per_step->high;
  }
  return rate;
}

void count_looks(JudgedOwner& owner, const std::vector<OwnerPoint>& points,
                 const std::vector<Stretch>& stretches) {
  owner.looks = owner.process->looks.size();
  std::vector<bool> grown(points.size());
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    if (stretches[i].bytes > 0.0) {
      grown[i] = true;
      grown[i + 1] = true;
    }
  }
  owner.grown_looks = static_cast<std::size_t>(std::count(grown.begin(), grown.end(), true));
}

// How fast it grew at the end, against the beginning; nullopt: that cannot be compared. New entries
// count, or bytes where not all of them are known.
std::optional<double> last_pace(const std::vector<Stretch>& stretches) {
  if (stretches.size() < 2) {
    return std::nullopt;
  }
  const bool on_steps = has_steps(stretches);
  const bool by_entries = std::all_of(stretches.begin(), stretches.end(),
                                      [](const Stretch& each) { return each.entries.has_value(); });
  const auto pace_of = [&](const Stretch& stretch) {
    return (by_entries ? *stretch.entries : stretch.bytes) /
           std::max(on_steps ? stretch.steps : stretch.seconds, 1e-9);
  };
  const double first = pace_of(stretches.front());
  return first > 0.0 ? std::optional(pace_of(stretches.back()) / first) : std::nullopt;
}

bool is_constant(const Range& range) {
  return range.low > 0.0 && range.high - range.low <= kSame * range.mean;
}

// What Python's own types can be asked for. Others may be anything.
bool is_keyed(std::string_view type) {
  static constexpr std::array<std::string_view, 12> kTypes{"dict",
                                                           "set",
                                                           "OrderedDict",
                                                           "collections.OrderedDict",
                                                           "Counter",
                                                           "defaultdict",
                                                           "collections.Counter",
                                                           "collections.defaultdict",
                                                           "frozenset",
                                                           "WeakValueDictionary",
                                                           "functools._lru_cache_wrapper",
                                                           "_lru_cache_wrapper"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}
bool is_appended(std::string_view type) {
  static constexpr std::array<std::string_view, 4> kTypes{"list", "deque", "collections.deque",
                                                          "bytearray"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

void add_of_entries(JudgedOwner& owner, const std::vector<Stretch>& stretches) {
  const bool on_steps = has_steps(stretches);
  const auto per_s = rate_over(stretches, entries_in, seconds_in);
  const auto per_step = rate_over(stretches, entries_in, steps_in);
  if (per_s) {
    owner.entries_per_s = per_s->mean;
  }
  if (per_step && on_steps) {
    owner.entries_per_step = per_step->mean;
  }
  const auto known = static_cast<std::size_t>(
      std::count_if(stretches.begin(), stretches.end(),
                    [](const Stretch& each) { return each.entries.has_value(); }));
  if (known < 2 || known < stretches.size()) {
    return;  // of one number nobody can say that it stays the same
  }
  if (per_step && on_steps && is_constant(*per_step)) {
    owner.evidence.push_back({OwnerEvidenceKind::kEntriesPerStep, per_step->mean});
  } else if (per_s && !on_steps && is_constant(*per_s)) {
    owner.evidence.push_back({OwnerEvidenceKind::kEntriesPerSecond, per_s->mean});
  }
}

// Whether every sample of the data set has been used once since the first look, as far as marked
// epochs tell.
void add_of_epochs(JudgedOwner& owner, const RunOwners& run,
                   const std::vector<OwnerPoint>& points) {
  const bool on_steps =
      run.epoch_steps && !std::isnan(points.front().step) && !std::isnan(points.back().step);
  if (!on_steps && !run.epoch_seconds) {
    return;
  }
  const double seen = on_steps ? (points.back().step - points.front().step) / *run.epoch_steps
                               : (points.back().t_s - points.front().t_s) / *run.epoch_seconds;
  if (seen >= kMoreThanAnEpoch) {
    owner.evidence.push_back({OwnerEvidenceKind::kPastEpoch, seen});
  } else if (seen < 1.0) {
    owner.evidence.push_back({OwnerEvidenceKind::kWithinFirstEpoch, std::max(seen, 0.0)});
  }
}

void add_evidence(JudgedOwner& owner, const RunOwners& run, const std::vector<OwnerPoint>& points,
                  const std::vector<Stretch>& stretches) {
  add_of_entries(owner, stretches);
  const std::string& type = owner.track->record.type;
  if (is_appended(type)) {
    owner.evidence.push_back({OwnerEvidenceKind::kAppended, 0.0});
  }
  const std::optional<double> pace = last_pace(stretches);
  const bool has_stopped = pace && *pace <= kStillRate;
  if (!has_stopped) {
    add_of_epochs(owner, run, points);
  }
  if (is_keyed(type)) {
    owner.evidence.push_back({OwnerEvidenceKind::kKeyed, 0.0});
  }
  if (has_stopped) {
    owner.evidence.push_back({OwnerEvidenceKind::kStopped, 0.0});
  } else if (pace && *pace <= kSlowingRate) {
    owner.evidence.push_back({OwnerEvidenceKind::kSlowing, *pace});
  }
  std::stable_sort(owner.evidence.begin(), owner.evidence.end(),
                   [](const OwnerEvidence& a, const OwnerEvidence& b) { return a.kind < b.kind; });
}

bool has(const JudgedOwner& owner, OwnerEvidenceKind kind) {
  return std::any_of(owner.evidence.begin(), owner.evidence.end(),
                     [&](const OwnerEvidence& each) { return each.kind == kind; });
}

// As many new entries each step, in what nothing is looked up in: no warm-up that anybody knows
// does that for so long.
Options options_for(const JudgedOwner& owner, const Options& options) {
  constexpr double kLongEnoughSteps = 200.0;
  constexpr double kLongEnoughSeconds = 600.0;
  const bool is_constant = has(owner, OwnerEvidenceKind::kEntriesPerStep) ||
                           has(owner, OwnerEvidenceKind::kEntriesPerSecond);
  const bool is_clear = is_constant && (has(owner, OwnerEvidenceKind::kAppended) ||
                                        has(owner, OwnerEvidenceKind::kPastEpoch));
  Options own = options;
  if (is_clear && options.warmup.automatic()) {
    own.warmup = {kLongEnoughSeconds, std::nullopt};
    if (has(owner, OwnerEvidenceKind::kEntriesPerStep)) {
      own.warmup = {std::nullopt, kLongEnoughSteps};
    }
  }
  return own;
}

void measure_growth(JudgedOwner& owner, const std::vector<OwnerPoint>& points,
                    const std::vector<Stretch>& stretches) {
  const Pattern* const pattern = owner.series.find({PatternKind::kLeak, PatternKind::kGrowth});
  const OwnerPoint& first = points.front();
  owner.since = {first.t_s, std::isnan(first.step) ? std::nullopt : std::optional(first.step)};
  owner.growth_bytes = points.back().grown_bytes - first.grown_bytes;
  if (pattern != nullptr && points.size() >= kEnoughForJudge) {
    owner.rate = pattern->rate;
    owner.growth_bytes = pattern->growth_bytes;
    owner.since = pattern->from;
  }
  if (!owner.rate.bytes_per_s) {
    owner.rate = rate_of_few(stretches);
  }
}

}  // namespace

JudgedOwner judge_owner(const RunOwners& run, const LookedProcess& process, const OwnerTrack& track,
                        const Options& options) {
  JudgedOwner owner;
  owner.process = &process;
  owner.track = &track;
  const std::vector<OwnerPoint> points = points_of(process, track, run);
  if (points.empty()) {
    owner.undetermined = true;
    return owner;
  }
  const std::vector<Stretch> stretches = stretches_of(points);
  count_looks(owner, points, stretches);
  add_evidence(owner, run, points, stretches);
  Series series;
  for (const OwnerPoint& point : points) {
    series.add(point.t_s, point.step, point.grown_bytes);
  }
  owner.series = judge(series, options_for(owner, options));
  owner.verdict = owner.series.verdict;
  owner.undetermined = owner.series.undetermined;
  // A few looks are too few for the curve to say that it has settled.
  if (owner.grows() && points.size() < kEnoughForJudge && has(owner, OwnerEvidenceKind::kStopped)) {
    owner.verdict = Verdict::kWarmup;
  }
  if (owner.grows()) {
    measure_growth(owner, points, stretches);
  }
  return owner;
}

std::string_view owner_evidence_name(OwnerEvidenceKind kind) {
  static constexpr std::array<std::string_view, 8> kNames{
      "entries_per_step",   "entries_per_s", "appended", "past_epoch", "keyed",
      "within_first_epoch", "slowing",       "stopped"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace tidemark::tracker
