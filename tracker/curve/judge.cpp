// SPDX-License-Identifier: Apache-2.0
#include "tracker/curve/judge.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tracker/curve/allowance.h"
#include "tracker/curve/curve.h"
#include "tracker/curve/cycles.h"
#include "tracker/curve/floor.h"
#include "tracker/curve/growth_test.h"
#include "tracker/curve/likelihood.h"
#include "tracker/curve/models.h"
#include "tracker/curve/settling.h"
#include "tracker/curve/statistics.h"
#include "tracker/curve/verdict_parts.h"

namespace tidemark::tracker {
namespace {

constexpr std::size_t kEnoughPoints = 6;
constexpr double kRising = 0.02;
constexpr double kStillShare = 0.2;
constexpr double kSameSlope = 0.3;
constexpr std::size_t kFewestBlocksBetweenSpikes = 6;
constexpr double kStrictness = 2.0;
constexpr double kEarlySigmas = 8.0;  // a rise inside the allowance must exceed so much noise
constexpr std::size_t kWindowThatTells = 8;
constexpr std::size_t kBlocksAfterJump = 3;
constexpr double kRelease = 0.05;
constexpr double kSigmaOfEven = 0.29;  // of its width: what is as likely anywhere in between
constexpr double kSurelySmall = 0.5;   // of the least rise that counts
constexpr double kLateRiseSigmas = 6.0;
constexpr double kLateRiseShare = 0.25;  // of the least rise that counts

// One series while it is judged.
class Judge {
 public:
  Judge(const Series& series, const Options& options);
  SeriesVerdict run();

 private:
  void measure();
  void shorten_wait();
  void judge_few_points();
  void judge_window();
  void judge_automatic();
  void settle_or_grow();
  std::size_t leak_began() const;
  void add_leak_pattern();
  void add_growth_pattern();
  void add_minor_patterns();
  void find_late_rise();
  void add_spikes();
  void add_evidence();
  void set_detectable();
  bool is_too_early_to_guess() const;
  void set_likelihood();
  void set_needs();

  bool stands_still_at_the_end() const;
  bool is_rising() const;
  bool has_clear_growth() const;
  std::optional<std::size_t> find_plateau() const;
  double growth_before(std::size_t plateau) const;
  std::span<const double> xs(std::size_t first) const { return std::span(floor_.x).subspan(first); }
  std::span<const double> bytes(std::size_t first) const {
    return std::span(floor_.bytes).subspan(first);
  }
  double end() const { return curve_.points.back().x; }

  const Options& options_;
  Curve curve_;
  Cycles cycles_;
  Floor floor_;
  Pace pace_;
  Gates gates_;
  bool automatic_ = true;  // the allowance
  Allowance allowance_;
  double allowance_spent_ = 0.0;     // share of it
  double shortest_late_rise_ = 0.0;  // on the axis
  bool fills_limit_ = false;         // inside the allowance, going on as it does
  std::size_t window_ = 0;           // first floor block after the allowance
  GrowthTest growth_;
  bool slowing_since_start_ = false;
  std::optional<std::size_t> still_;
  std::optional<std::size_t> late_rise_;  // first block of it
  SeriesVerdict verdict_;
};

Judge::Judge(const Series& series, const Options& options)
    : options_(options), curve_(prepare(series)) {
  verdict_.samples = series.samples();
  verdict_.axis = curve_.axis;
}

SeriesVerdict Judge::run() {
  if (curve_.points.empty()) {
    verdict_.undetermined = true;
    verdict_.needs = Needs{std::nullopt, std::nullopt, static_cast<double>(kEnoughPoints)};
    return std::move(verdict_);
  }
  measure();
  if (curve_.points.size() < kEnoughPoints) {
    judge_few_points();
  } else {
    judge_window();
  }
  add_spikes();
  if (curve_.teardown) {
    verdict_.patterns.push_back(*curve_.teardown);
  }
  sort_by_place(verdict_.patterns, curve_.axis);
  set_detectable();
  set_likelihood();
  verdict_.forecast = forecast(verdict_, floor_, pace_, options_.limit_bytes);
  set_needs();
  add_evidence();
  verdict_.confidence = confidence_of(verdict_, growth_);
  return std::move(verdict_);
}

void Judge::measure() {
  cycles_ = find_cycles(curve_);
  floor_ = make_floor(curve_, cycles_);
  pace_ = pace_of(curve_);
  const double level = median(floor_.bytes);
  gates_.least_rate = least_rate(pace_, options_, level);
  // The low between two excursions depends on when a sample happened to be taken.
  gates_.fewest_blocks = cycles_.excursions.empty() ? kFewestBlocks : kFewestBlocksBetweenSpikes;
  automatic_ = !warmup_applies(curve_, pace_, options_.warmup);
  gates_.strictness = automatic_ ? kStrictness : 1.0;
  allowance_ = allowance_of(curve_, pace_, options_);
  const double left = std::max(0.0, allowance_.end - end());
  allowance_spent_ = allowance_.length > 0.0 ? 1.0 - left / allowance_.length : 1.0;
  shortest_late_rise_ = shortest_late_rise(curve_);
  shorten_wait();

  const bool one_place = curve_.span() <= 0.0;  // nothing applies, and nothing is missing
  verdict_.warmup_ignored = !one_place && automatic_ && !options_.warmup.automatic();
  verdict_.min_leak_ignored =
      !one_place && options_.min_leak && !min_leak_applies(pace_, *options_.min_leak);
  verdict_.begin = moment_of(curve_.points.front());
  verdict_.end = moment_of(curve_.points.back());
  verdict_.floor = floor_.points;
  verdict_.first_floor_bytes = floor_.bytes.front();
  verdict_.last_floor_bytes = floor_.bytes.back();
  verdict_.min_bytes = curve_.points.front().min_bytes;
  double sum = 0.0;
  double samples = 0.0;
  for (const CurvePoint& point : curve_.points) {
    verdict_.min_bytes = std::min(verdict_.min_bytes, point.min_bytes);
    verdict_.max_bytes = std::max(verdict_.max_bytes, point.max_bytes);
    sum += point.mean_bytes * static_cast<double>(point.samples);
    samples += static_cast<double>(point.samples);
  }
  verdict_.mean_bytes = sum / samples;

  Moment allowance;
  const double distance = allowance_.end - curve_.points.front().x;
  if (!std::isnan(pace_.seconds_per_x)) {
    allowance.t_s = curve_.points.front().t_s + distance * pace_.seconds_per_x;
  }
  if (curve_.axis == Axis::kSteps) {
    allowance.step = allowance_.end;
  }
  verdict_.allowance_end = allowance;
}

// An answer that comes when memory is full is of no use: growth that leads to the limit is not
// waited for as long as growth that does not.
void Judge::shorten_wait() {
  const auto lowest = std::min_element(floor_.bytes.begin(), floor_.bytes.end());
  const auto first = static_cast<std::size_t>(lowest - floor_.bytes.begin());
  const double slope = estimate_growth(xs(first), bytes(first)).slope;
  if (!options_.limit_bytes || slope <= 0.0) {
    return;
  }
  const double to_limit = std::max(0.0, *options_.limit_bytes - *lowest) / slope;
  fills_limit_ = floor_.x[first] + to_limit < allowance_.end;
  if (automatic_) {
    const double wait = longest_wait(pace_, to_limit);
    allowance_.end = std::min(allowance_.end, floor_.x[first] + wait);
    shortest_late_rise_ = std::min(shortest_late_rise_, wait);
  }
}

bool Judge::is_rising() const {
  return verdict_.last_floor_bytes > (1.0 + kRising) * verdict_.first_floor_bytes;
}

void Judge::judge_few_points() {
  verdict_.undetermined = true;
  if (is_rising()) {
    verdict_.verdict = Verdict::kGrowing;
    add_growth_pattern();
  }
}

void Judge::judge_window() {
  window_ = 0;
  while (window_ < floor_.starts.size() && floor_.starts[window_] < allowance_.end) {
    ++window_;
  }
  growth_ = test_growth(xs(window_), bytes(window_), gates_);
  growth_.first += window_;
  for (Jump& jump : growth_.jumps) {
    jump.index += window_;
  }
  if (automatic_) {
    judge_automatic();
  } else if (stands_still_at_the_end()) {
    growth_.outcome = Growth::kStopped;
  }
  const bool is_rate_of_a_leak = growth_.slope > 0.0 && growth_.slope >= gates_.least_rate;
  if (growth_.outcome == Growth::kKeepsRising && !is_rate_of_a_leak) {
    growth_.outcome = Growth::kDrift;  // however it came to be called rising
  }
  if (growth_.outcome == Growth::kKeepsRising) {
    verdict_.verdict = Verdict::kLeak;
    add_leak_pattern();
  } else {
    settle_or_grow();
  }
  add_minor_patterns();
  if (verdict_.verdict < Verdict::kGrowing) {
    find_late_rise();
  }
}

// What the automatic allowance asks for besides: growth that does not slow down since the start and
// goes on to the very end, and that has lasted for so long that a late warm-up is no fair
// explanation. Then, when the floor had settled before, the allowance need not even be over.
void Judge::judge_automatic() {
  slowing_since_start_ = slows_down(floor_.x, floor_.bytes);
  GrowthTest whole = test_growth(floor_.x, floor_.bytes, gates_);
  const bool rises = whole.outcome == Growth::kKeepsRising;
  const bool lasted =
      has_lasted(curve_, floor_, rises ? whole.first : growth_.first, shortest_late_rise_);
  if (growth_.outcome == Growth::kKeepsRising) {
    if (slowing_since_start_) {
      growth_.outcome = Growth::kSlowing;
    } else if (growth_.shape != LeakShape::kSteps &&
               (growth_.end_share < kEndShare ||
                has_stopped(floor_, growth_.first, growth_.slope) ||
                still_since(xs(growth_.first), bytes(growth_.first)).value_or(0) > 0)) {
      growth_.outcome = Growth::kStopped;
    } else if (!lasted) {
      growth_.outcome = Growth::kYoung;
    }
    return;
  }
  if (rises && lasted && !slowing_since_start_ && whole.shape != LeakShape::kSteps &&
      whole.end_share >= kEndShare && !has_stopped(floor_, whole.first, whole.slope) &&
      whole.rise_bytes >= kEarlySigmas * whole.noise.long_run &&
      has_settled_before(floor_, whole.first, whole.slope)) {
    growth_ = std::move(whole);
  }
}

// Whatever the mean rate of a rise that is over, that of its end is none.
bool Judge::stands_still_at_the_end() const {
  return growth_.outcome == Growth::kKeepsRising && growth_.shape != LeakShape::kSteps &&
         has_stopped(floor_, growth_.first, growth_.slope);
}

// Growth in the window that stands out of the noise and above the gates, though it is no leak.
bool Judge::has_clear_growth() const {
  // Also what has stopped, bent or slowed down may be too little to matter. A block without a low
  // of its own, inside an excursion, says nothing about that.
  const std::span<const double> window = bytes(window_);
  const auto level = [&](std::size_t first, std::size_t last) {
    return median({window.begin() + static_cast<std::ptrdiff_t>(first),
                   window.begin() + static_cast<std::ptrdiff_t>(last)});
  };
  const std::size_t size = window.size();
  if (size >= kEnoughPoints && std::max(level(size - 3, size), level(size / 2, size)) <
                                   (1.0 + kSurelySmall * gates_.least_rise_share) * level(0, 3)) {
    return false;
  }
  switch (growth_.outcome) {
    case Growth::kYoung:
    case Growth::kUneven:
    case Growth::kStopped:
    case Growth::kSlowing:
    case Growth::kKeepsRising:
      return true;
    case Growth::kTooShort:
    case Growth::kFlat:
    case Growth::kDrift:
    case Growth::kSmall:
      return false;
  }
  return false;
}

std::optional<std::size_t> Judge::find_plateau() const {
  const double chance = cycles_.low_doubt_bytes * kSigmaOfEven;
  if (const auto still = still_since(floor_.x, floor_.bytes, chance)) {
    // What rises clearly does not stand still all the while, however small it is against the noise;
    // and what rises to its very end, only not for long enough, does not stand still at all.
    const bool contradicts =
        has_clear_growth() && (*still <= window_ || growth_.outcome == Growth::kYoung);
    return contradicts ? std::nullopt : still;
  }
  const bool flat = growth_.outcome == Growth::kFlat || growth_.outcome == Growth::kDrift;
  if (!flat || floor_.x.size() - window_ < kWindowThatTells) {
    return std::nullopt;
  }
  if (growth_.jumps.empty()) {
    return growth_.first;
  }
  const std::size_t last_jump = growth_.jumps.back().index;
  const bool some_time_ago = floor_.x.size() - last_jump >= kBlocksAfterJump;
  return some_time_ago ? std::optional(last_jump) : std::nullopt;
}

// Up to where the floor settled. Under a drift that is what the drift, drawn back to the start,
// does not explain.
double Judge::growth_before(std::size_t plateau) const {
  if (growth_.outcome != Growth::kDrift) {
    const std::span<const double> settled = bytes(plateau);
    return median({settled.begin(), settled.end()}) - verdict_.first_floor_bytes;
  }
  const double distance = floor_.x[growth_.first] - floor_.x.front();
  double grown = growth_.level_bytes - growth_.slope * distance - verdict_.first_floor_bytes;
  for (const Jump& jump : growth_.jumps) {
    const bool in_line = growth_.shape == LeakShape::kSteps;
    grown += jump.index <= plateau && !in_line ? jump.height_bytes : 0.0;
  }
  return grown;
}

void Judge::settle_or_grow() {
  still_ = find_plateau();
  const double still_share =
      still_ ? (end() - floor_.starts[*still_]) / std::max(curve_.span(), 1e-300) : 0.0;
  const bool after_jump = still_ && !growth_.jumps.empty() && *still_ == growth_.jumps.back().index;
  if (still_share >= kStillShare || after_jump) {
    const double grown = growth_before(*still_);
    const double sigma = local_sigma(floor_.bytes);
    const bool grew =
        *still_ > 0 && grown > kRising * verdict_.first_floor_bytes && grown > 3.0 * sigma;
    if (grew) {
      verdict_.verdict = Verdict::kWarmup;
      verdict_.patterns.push_back(warmup_pattern(floor_, pace_, *still_));
    }
    return;
  }
  if (is_rising() || has_clear_growth()) {
    verdict_.verdict = Verdict::kGrowing;
    verdict_.undetermined = true;
    add_growth_pattern();
  }
}

// The leak may be older than the window that proved it: as old as the straight piece that it is the
// end of.
std::size_t Judge::leak_began() const {
  const double resolution = local_sigma(floor_.bytes) / 4.0;
  for (const Segment& piece : find_segments(floor_.x, floor_.bytes, resolution)) {
    const bool holds_it = piece.first <= growth_.first && growth_.first < piece.last;
    if (holds_it && std::abs(piece.line.slope - growth_.slope) <= kSameSlope * growth_.slope) {
      return piece.first;
    }
  }
  return growth_.first;
}

void Judge::add_leak_pattern() {
  const std::size_t began = leak_began();
  const double before = floor_.bytes[began] - floor_.bytes.front();
  const double distance = floor_.x[began] - floor_.x.front();
  const bool warmed_up = before > kRising * floor_.bytes.front() && distance > 0.0 &&
                         before / distance > 2.0 * growth_.slope;
  if (warmed_up) {
    const auto settled =
        still_since(std::span(floor_.x).first(began + 1), std::span(floor_.bytes).first(began + 1));
    const std::size_t plateau = settled.value_or(0) > 0 ? *settled : began;
    verdict_.patterns.push_back(warmup_pattern(floor_, pace_, plateau));
  }
  Pattern pattern;
  pattern.kind = PatternKind::kLeak;
  pattern.shape = growth_.shape;
  pattern.from = floor_.points[began].at;
  pattern.to = moment_of(curve_.points.back());
  pattern.growth_bytes =
      growth_.rise_bytes + growth_.slope * (floor_.x[growth_.first] - floor_.x[began]);
  pattern.rate = rate_on_axes(pace_, growth_.slope, growth_.low, growth_.high);
  pattern.count = growth_.shape == LeakShape::kSteps ? growth_.similar_jumps : 0;
  verdict_.patterns.push_back(pattern);
}

void Judge::add_growth_pattern() {
  // Since the lowest point: growth that began late is not averaged with what came before.
  const auto lowest = std::min_element(floor_.bytes.begin(), floor_.bytes.end());
  const auto first = static_cast<std::size_t>(lowest - floor_.bytes.begin());
  Pattern pattern;
  pattern.kind = PatternKind::kGrowth;
  pattern.from = floor_.points[first].at;
  pattern.to = moment_of(curve_.points.back());
  pattern.growth_bytes = floor_.bytes.back() - *lowest;
  const GrowthEstimate now = estimate_growth(xs(first), bytes(first));
  pattern.rate = rate_on_axes(pace_, now.slope, now.low, now.high);
  verdict_.patterns.push_back(pattern);
}

void Judge::add_minor_patterns() {
  if (verdict_.verdict != Verdict::kLeak && growth_.outcome == Growth::kDrift) {
    Pattern drift;
    drift.kind = PatternKind::kDrift;
    drift.from = floor_.points[growth_.first].at;
    drift.to = moment_of(curve_.points.back());
    drift.growth_bytes = growth_.rise_bytes;
    drift.rate = rate_on_axes(pace_, growth_.slope, growth_.low, growth_.high);
    verdict_.patterns.push_back(drift);
  }
  if (growth_.shape != LeakShape::kSteps) {
    for (const Jump& jump : growth_.jumps) {
      verdict_.patterns.push_back(jump_pattern(floor_, jump));
    }
  }
  const bool released = verdict_.last_floor_bytes < (1.0 - kRelease) * verdict_.first_floor_bytes;
  if (released && verdict_.find(PatternKind::kRelease) == nullptr) {
    Pattern release;
    release.kind = PatternKind::kRelease;
    release.from = floor_.points.front().at;
    release.to = moment_of(curve_.points.back());
    release.growth_bytes = verdict_.last_floor_bytes - verdict_.first_floor_bytes;
    verdict_.patterns.push_back(release);
  }
}

// A floor that counts as still may have begun to rise: what has not been tested is not called calm.
void Judge::find_late_rise() {
  const std::size_t first = still_.value_or(0);
  const std::span<const double> x = xs(first);
  const std::span<const double> y = bytes(first);
  if (x.size() < kWindowThatTells || !cycles_.excursions.empty()) {
    return;
  }
  const double least_rise =
      kLateRiseShare * gates_.least_rise_share * std::abs(median({y.begin(), y.end()}));
  const auto is_rise = [&](double slope, double error, double length) {
    return slope >= gates_.least_rate && slope >= kLateRiseSigmas * error &&
           slope * length >= least_rise;
  };
  const double least = local_sigma(floor_.bytes) / 4.0;
  const Noise noise = noise_around_segments(x, y, least);
  const Line line = fit_line(x, y);
  const auto criterion = [&](double squares, std::size_t parameters) {
    return information_criterion(squares, x.size(), noise.effective, parameters, least);
  };
  const double straight = criterion(sum_of_squares(residuals(line, x, y)), 2);
  const auto kink = fit_kink(x, y, kBlocksAfterJump);
  Pattern rise;
  if (kink && straight - criterion(kink->squares, 4) >= kDecisive) {
    const double error = noise.long_run * kink->after_error;
    if (kink->before > kSameSlope * kink->after ||
        !is_rise(kink->after, error, x.back() - kink->x)) {
      return;
    }
    late_rise_ = first + kink->index;
    rise.rate =
        rate_on_axes(pace_, kink->after, kink->after - 2.0 * error, kink->after + 2.0 * error);
    rise.growth_bytes = kink->after * (x.back() - kink->x);
  } else {
    const double error = noise.long_run / std::sqrt(std::max(spread(x), 1e-300));
    if (!is_rise(line.slope, error, x.back() - x.front()) ||
        still_since(x, y, 0.0).value_or(0) > 0) {
      return;
    }
    late_rise_ = first;
    rise.rate = rate_on_axes(pace_, line.slope, line.slope - 2.0 * error, line.slope + 2.0 * error);
    rise.growth_bytes = line.slope * (x.back() - x.front());
  }
  rise.kind = PatternKind::kLateRise;
  rise.from = floor_.points[*late_rise_].at;
  rise.to = moment_of(curve_.points.back());
  verdict_.patterns.push_back(rise);
}

void Judge::add_spikes() {
  const std::optional<Pattern> spikes = spikes_pattern(curve_, cycles_, pace_);
  if (!spikes) {
    return;
  }
  verdict_.patterns.push_back(*spikes);
  if (verdict_.verdict < Verdict::kSpikes) {
    verdict_.verdict = Verdict::kSpikes;
  }
}

void Judge::set_detectable() {
  if (curve_.points.size() < kEnoughPoints) {
    return;
  }
  // Of the window after the allowance, or, while that is not over, of the plateau or the whole run;
  // of no more than what lies before a rise at the end.
  const bool after = floor_.x.size() - window_ >= kFewestBlocks;
  const std::size_t first = after ? window_ : still_.value_or(0);
  const bool before_rise = late_rise_ && *late_rise_ >= first + kFewestBlocks;
  const std::size_t last = before_rise ? *late_rise_ : floor_.x.size();
  std::vector<Jump> jumps;
  for (Jump jump : growth_.jumps) {
    if (jump.index > first && jump.index < last && growth_.shape != LeakShape::kSteps) {
      jump.index -= first;
      jumps.push_back(jump);
    }
  }
  const std::size_t count = last - first;
  const double rate = smallest_detectable(xs(first).first(count), bytes(first).first(count), jumps,
                                          local_sigma(floor_.bytes), gates_);
  if (rate <= 0.0) {
    return;  // of nothing at all
  }
  const GrowthRate both = rate_on_axes(pace_, rate, rate, rate);
  verdict_.smallest_detectable_per_s = both.bytes_per_s;
  verdict_.smallest_detectable_per_step = both.bytes_per_step;
  verdict_.tested_from = floor_.points[first].at;
  verdict_.tested_to = before_rise ? floor_.points[last].at : moment_of(curve_.points.back());
}

// Every program rises while it loads what it needs, and two samples are always on a line.
bool Judge::is_too_early_to_guess() const {
  constexpr double kStartS = 30.0;
  const auto first = moment_of(curve_.points.front()).t_s;
  const auto last = moment_of(curve_.points.back()).t_s;
  return curve_.points.size() < kEnoughPoints ||
         (first && last && options_.age_at_start_s.value_or(0.0) + *last - *first < kStartS);
}

void Judge::set_likelihood() {
  if (verdict_.verdict != Verdict::kGrowing || is_too_early_to_guess()) {
    return;
  }
  const Rise rise = last_rise(floor_);
  RiseTime time;
  time.spent_share = allowance_spent_;
  time.shortest_late = shortest_late_rise_;
  time.fills_limit = fills_limit_;
  verdict_.likelihood =
      LeakLikelihood{leak_chance(floor_, rise, time), rise.form, floor_.points[rise.first].at};
}

void Judge::set_needs() {
  if (!verdict_.undetermined) {
    return;
  }
  Needs needs;
  if (curve_.points.size() < kEnoughPoints) {
    needs.more_points = static_cast<double>(kEnoughPoints - curve_.points.size());
  }
  // Past the allowance, and then for as long as a leak or a plateau takes to show.
  const double to_show = std::max(
      {static_cast<double>(kBlocksOfLateRise) * floor_.block_width, kStillShare * curve_.span()});
  double decided_after = allowance_.end;
  if (automatic_ && verdict_.verdict == Verdict::kGrowing) {
    const auto lowest = std::min_element(floor_.bytes.begin(), floor_.bytes.end());
    const double began = floor_.starts[static_cast<std::size_t>(lowest - floor_.bytes.begin())];
    decided_after = std::max(decided_after, began + shortest_late_rise_);
  }
  const double missing = std::max(0.0, decided_after - end()) + to_show;
  if (missing > 0.0 && curve_.points.size() > 1) {
    if (curve_.axis == Axis::kSteps) {
      needs.more_steps = missing;
      if (!std::isnan(pace_.seconds_per_x)) {
        needs.more_s = missing * pace_.seconds_per_x;
      }
    } else {
      needs.more_s = missing;
    }
  }
  verdict_.needs = needs;
}

void Judge::add_evidence() {
  const auto add = [&](EvidenceKind kind, double value, std::optional<double> bar) {
    verdict_.evidence.push_back({kind, value, bar});
  };
  add(EvidenceKind::kPoints, static_cast<double>(curve_.points.size()),
      static_cast<double>(kEnoughPoints));
  if (curve_.points.size() < kEnoughPoints) {
    return;
  }
  add(EvidenceKind::kAllowanceEnd, end(), allowance_.end);
  add(EvidenceKind::kBlocksInWindow, static_cast<double>(floor_.x.size() - window_),
      static_cast<double>(gates_.fewest_blocks));
  add(EvidenceKind::kNoise,
      growth_.noise.long_run > 0.0 ? growth_.noise.long_run : local_sigma(floor_.bytes),
      std::nullopt);
  if (growth_.outcome != Growth::kTooShort) {
    add(EvidenceKind::kFloorRise, growth_.rise_bytes,
        gates_.least_rise_share * growth_.level_bytes);
    if (growth_.error > 0.0) {
      add(EvidenceKind::kSlopeInSigmas, growth_.slope / growth_.error, growth_.bar);
    }
    add(EvidenceKind::kRateAgainstGate, growth_.slope, gates_.least_rate);
    if (growth_.shape == LeakShape::kSteps) {
      add(EvidenceKind::kEqualJumps, static_cast<double>(growth_.similar_jumps),
          static_cast<double>(kSimilarJumps));
    } else {
      add(EvidenceKind::kStillRising, growth_.end_share, kEndShare);
      add(EvidenceKind::kSaturationBic, growth_.saturation_bic, kDecisive);
    }
  }
  if (slowing_since_start_) {
    add(EvidenceKind::kSlowingDown, 1.0, std::nullopt);
  }
  if (still_) {
    add(EvidenceKind::kStillSince,
        (end() - floor_.starts[*still_]) / std::max(curve_.span(), 1e-300), kStillShare);
  }
  if (!cycles_.excursions.empty()) {
    add(EvidenceKind::kSpikeHeight, cycles_.height_bytes, cycles_.height_bar_bytes);
  }
}

}  // namespace

SeriesVerdict judge(const Series& series, const Options& options) {
  return Judge(series, options).run();
}

}  // namespace tidemark::tracker
