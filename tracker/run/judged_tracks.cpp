// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/judged_tracks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "tracker/curve/judge.h"
#include "tracker/run/process_churn.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {
namespace {

constexpr double kMattersShare = 0.01;       // of the floor of the tree, or of its growth
constexpr double kLeakSharePerHour = 0.005;  // as Options::min_leak says
constexpr double kStepsLikeAnHour = 1000.0;
constexpr std::size_t kMostOthers = 64;
constexpr double kCopyingThatLeaks = 0.05;  // chance that it does not end at its bound

bool trains(const Track& track) {
  return track.role == Role::kTrainer || track.role == Role::kRank;
}

std::size_t processes_of(const RunTracks& run, const Track& group) {
  return static_cast<std::size_t>(
      std::count_if(run.tracks.begin(), run.tracks.end(),
                    [&](const Track& track) { return is_member(track, group); }));
}

// How long ago the allowance of a group began: with the process that trains, else with the largest
// of those that were there first.
std::optional<double> age_of(const RunTracks& run, const Track& track) {
  if (track.kind == TrackKind::kProcess || track.age_at_start_s) {
    return track.age_at_start_s;
  }
  const Track* first = nullptr;
  double first_bytes = 0.0;
  for (const Track& process : run.tracks) {
    const Series* curve = is_member(process, track) ? size_curve(process) : nullptr;
    if (curve == nullptr) {
      continue;
    }
    const double bytes = curve->cells().front().min_bytes;
    if (first == nullptr ||
        std::pair(trains(process), bytes) > std::pair(trains(*first), first_bytes)) {
      first = &process;
      first_bytes = bytes;
    }
  }
  return first == nullptr ? std::nullopt : first->age_at_start_s;
}

class Judging {
 public:
  Judging(const RunTracks& run, const Options& options, std::optional<Metric> metric)
      : run_(run), options_(options), metric_(metric) {
    judged_.process_counts = count_processes(run);
    if (!options_.limit_bytes) {
      options_.limit_bytes = metric == Metric::kGpu ? run.gpu_limit_bytes : run.limit_bytes;
    }
    options_.steps_at_start = options.steps_at_start ? options.steps_at_start : run.steps_at_start;
    options_.epoch_steps = options.epoch_steps ? options.epoch_steps : run.epoch_steps;
    options_.epoch_seconds = options.epoch_seconds ? options.epoch_seconds : run.epoch_seconds;
  }

  JudgedTracks all() && {
    for (std::size_t i = 0; i < run_.tracks.size(); ++i) {
      if (run_.tracks[i].kind == TrackKind::kTree) {
        add_tree(i);
      }
    }
    if (judged_.tracks.empty()) {
      judged_.tree_floor_bytes = largest_floor();
    }
    for (std::size_t i = 0; i < run_.tracks.size(); ++i) {
      const Track& track = run_.tracks[i];
      const bool several = track.kind == TrackKind::kRole && processes_of(run_, track) != 1;
      const bool is_trainer = track.kind == TrackKind::kProcess && trains(track);
      if (several || is_trainer || track.kind == TrackKind::kShm) {
        add(i);
      }
    }
    add_others();
    return std::move(judged_);
  }

 private:
  void add_tree(std::size_t index) {
    if (std::optional<JudgedCurve> curve = choose_curve(run_.tracks[index], metric_)) {
      put(index, std::move(*curve), options_);
      const JudgedTrack& tree = judged_.tracks.back();
      judged_.tree_floor_bytes =
          std::max(judged_.tree_floor_bytes, tree.verdict.series.last_floor_bytes);
      tree_ = levels_in(tree.curve.series, judged_window(tree));
    }
  }

  void add(std::size_t index) {
    if (std::optional<JudgedCurve> curve = choose_curve(run_.tracks[index], metric_)) {
      const Options options = part_options(run_.tracks[index], *curve);
      put(index, std::move(*curve), options);
    }
  }

  // Growth of a part is measured against the whole: 1 MB an hour is much for a helper of 10 MB, and
  // nothing for the job.
  Options part_options(const Track& track, const JudgedCurve& curve) const {
    Options options = options_;
    if (!options.min_leak && judged_.tree_floor_bytes > 0.0) {
      const double bytes = kLeakSharePerHour * judged_.tree_floor_bytes;
      const bool timed = !std::isnan(curve.series.cells().front().t_s);
      options.min_leak = timed ? Rate{bytes, RateUnit::kSecond, 3600.0}
                               : Rate{bytes, RateUnit::kStep, kStepsLikeAnHour};
    }
    if (options.limit_bytes && tree_) {
      // The others of the tree take their part of the room.
      const double own = track.kind == TrackKind::kShm ? 0.0 : last_level(curve);
      const double others = std::max(tree_->last_bytes - own, 0.0);
      options.limit_bytes = std::max(*options.limit_bytes - others, 0.0);
    }
    return options;
  }

  static double last_level(const JudgedCurve& curve) {
    return levels_in(curve.series, {})->last_bytes;
  }

  void put(std::size_t index, JudgedCurve curve, Options options) {
    const Track& track = run_.tracks[index];
    options.age_at_start_s = age_of(run_, track);
    JudgedTrack judged;
    judged.verdict.track = index;
    judged.verdict.metric = curve.metric;
    judged.verdict.series = judge(curve.series, options);
    judged.curve = std::move(curve);
    remove_process_churn(track, options, judged);
    bound_unsharing(track, judged);
    if (!options_.min_leak) {
      judged.verdict.series.min_leak_ignored = false;  // it was ours
    }
    if (judged.verdict.series.forecast.limit_bytes) {
      judged.verdict.series.forecast.limit_bytes = options_.limit_bytes;
    }
    judged_.tracks.push_back(std::move(judged));
  }

  // Processes that start or exit are events. What is left of the curve without them decides, unless
  // ever more of them start.
  void remove_process_churn(const Track& track, const Options& options, JudgedTrack& judged) const {
    SeriesVerdict& series = judged.verdict.series;
    if (track.kind == TrackKind::kProcess || track.kind == TrackKind::kShm ||
        series.verdict < Verdict::kSpikes) {
      return;
    }
    if (keeps_starting(track, judged_window(judged))) {
      return;
    }
    std::optional<Series> steady = without_process_churn(run_, track, judged.curve.series);
    if (!steady) {
      return;
    }
    SeriesVerdict without = judge(*steady, options);
    if (without.verdict > series.verdict) {
      return;
    }
    // The levels stay those of the curve as it was; only the starts do not count as growth.
    without.first_floor_bytes = series.first_floor_bytes;
    without.last_floor_bytes = series.last_floor_bytes;
    without.min_bytes = series.min_bytes;
    without.max_bytes = series.max_bytes;
    without.mean_bytes = series.mean_bytes;
    without.samples = series.samples;
    without.begin = series.begin;
    without.end = series.end;
    without.floor = std::move(series.floor);
    series = std::move(without);
    judged.curve.series = std::move(*steady);
    judged.verdict.churn_removed = true;
  }

  bool keeps_starting(const Track& group, const Window& window) const {
    for (std::size_t i = 0; i < judged_.process_counts.by_role.size(); ++i) {
      const bool part = group.kind == TrackKind::kTree || group.role == static_cast<Role>(i);
      if (part && keeps_growing(judged_.process_counts.by_role[i], window)) {
        return true;
      }
    }
    return false;
  }

  void bound_unsharing(const Track& track, JudgedTrack& judged) const {
    SeriesVerdict& series = judged.verdict.series;
    const Window window = judged_window(judged);
    const std::optional<double> bound =
        unsharing_bound(run_, track, judged.curve, since_growth(window, series));
    if (!bound) {
      return;
    }
    judged.verdict.copy_on_write = true;
    if (series.verdict < Verdict::kGrowing) {
      return;
    }
    for (Pattern& pattern : series.patterns) {
      if (pattern.kind == PatternKind::kLeak) {
        pattern.kind = PatternKind::kGrowth;
      }
    }
    series.verdict = Verdict::kGrowing;
    series.undetermined = true;
    series.likelihood = series.likelihood.value_or(LeakLikelihood{});
    series.likelihood->chance = kCopyingThatLeaks;
    Forecast& forecast = series.forecast;
    forecast.asymptote_bytes = std::min(*bound, forecast.asymptote_bytes.value_or(*bound));
    if (forecast.limit_bytes && *forecast.asymptote_bytes < *forecast.limit_bytes) {
      forecast.in_s_low = forecast.in_s_high = std::nullopt;
      forecast.in_steps_low = forecast.in_steps_high = std::nullopt;
    }
    if (!series.needs) {
      series.needs = until_bound(series, *bound);
    }
  }

  // Without what came before it: when workers start, all that they see is new.
  static Window since_growth(Window window, const SeriesVerdict& series) {
    for (const PatternKind kind : {PatternKind::kGrowth, PatternKind::kLeak}) {
      if (const Pattern* const growth = series.find(kind)) {
        const Moment& from = growth->from;
        window.from = std::max(window.from, from.t_s.value_or(from.step.value_or(window.from)));
      }
    }
    return window;
  }

  static Needs until_bound(const SeriesVerdict& series, double bound_bytes) {
    Needs needs;
    const Pattern* growth = series.find(PatternKind::kGrowth);
    const double left = bound_bytes - series.last_floor_bytes;
    if (growth != nullptr && growth->rate.bytes_per_s.value_or(0.0) > 0.0) {
      needs.more_s = left / *growth->rate.bytes_per_s;
    }
    if (growth != nullptr && growth->rate.bytes_per_step.value_or(0.0) > 0.0) {
      needs.more_steps = left / *growth->rate.bytes_per_step;
    }
    return needs;
  }

  void add_others() {
    struct Other {
      double bytes = 0.0;
      std::size_t index = 0;
    };
    const double growth = tree_ ? std::max(tree_->growth_bytes(), 0.0) : 0.0;
    std::vector<Other> others;
    for (std::size_t i = 0; i < run_.tracks.size(); ++i) {
      const Track& track = run_.tracks[i];
      const std::optional<JudgedCurve> curve = track.kind == TrackKind::kProcess && !trains(track)
                                                   ? choose_curve(track, metric_)
                                                   : std::nullopt;
      if (!curve) {
        continue;
      }
      const Levels levels = *levels_in(curve->series, {});
      if (levels.max_bytes >= kMattersShare * judged_.tree_floor_bytes ||
          (growth > 0.0 && levels.growth_bytes() >= kMattersShare * growth)) {
        others.push_back({levels.max_bytes, i});
      }
    }
    std::stable_sort(others.begin(), others.end(),
                     [](const Other& a, const Other& b) { return a.bytes > b.bytes; });
    others.resize(std::min(others.size(), kMostOthers));
    for (const Other& other : others) {
      add(other.index);
    }
  }

  double largest_floor() const {
    double largest = 0.0;
    for (const Track& track : run_.tracks) {
      if (const std::optional<JudgedCurve> curve = choose_curve(track, metric_)) {
        largest = std::max(largest, last_level(*curve));
      }
    }
    return largest;
  }

  const RunTracks& run_;
  Options options_;
  std::optional<Metric> metric_;
  JudgedTracks judged_;
  std::optional<Levels> tree_;
};

}  // namespace

const JudgedTrack* JudgedTracks::tree(const RunTracks& run) const {
  const auto it = std::find_if(tracks.begin(), tracks.end(), [&](const JudgedTrack& judged) {
    return run.tracks[judged.verdict.track].kind == TrackKind::kTree;
  });
  return it == tracks.end() ? nullptr : &*it;
}

JudgedTracks judge_tracks(const RunTracks& run, const Options& options,
                          std::optional<Metric> metric) {
  return Judging(run, options, metric).all();
}

Window judged_window(const JudgedTrack& judged) {
  const std::vector<Cell>& cells = judged.curve.series.cells();
  Window window{cells.front().place(), cells.back().place()};
  if (judged.verdict.series.axis == Axis::kSteps) {  // after the last step nothing was judged
    const auto last = std::find_if(cells.rbegin(), cells.rend(),
                                   [](const Cell& cell) { return !std::isnan(cell.step); });
    window.to = last == cells.rend() ? window.to : last->place();
  }
  if (const Pattern* teardown = judged.verdict.series.find(PatternKind::kTeardown)) {
    const Moment& at = teardown->from;
    const double begin = at.t_s.value_or(at.step.value_or(window.to));
    window.to = std::min(window.to, std::nextafter(begin, window.from));
  }
  return window;
}

}  // namespace tidemark::tracker
