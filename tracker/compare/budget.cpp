// SPDX-License-Identifier: Apache-2.0
#include "tracker/compare/budget.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "tracker/curve/statistics.h"
#include "tracker/curve/verdict_parts.h"

namespace tidemark::tracker {
namespace {

double place_of(const FloorPoint& point, const Moment& moment, Axis axis) {
  return axis == Axis::kSteps ? moment.step.value_or(point.x) : moment.t_s.value_or(point.x);
}

// Of growth that may end or not, what it does after the allowance: what came before was expected.
// nullopt: the allowance lasts too long to tell.
std::optional<GrowthRate> rate_after_allowance(const SeriesVerdict& judged) {
  if (!judged.allowance_end || judged.floor.empty()) {
    return std::nullopt;
  }
  std::vector<double> x;
  std::vector<double> bytes;
  const FloorPoint* first = nullptr;
  for (const FloorPoint& point : judged.floor) {
    if (place_of(point, point.at, judged.axis) >=
        place_of(point, *judged.allowance_end, judged.axis)) {
      first = first == nullptr ? &point : first;
      x.push_back(point.x);
      bytes.push_back(point.floor_bytes);
    }
  }
  if (x.size() < kFewestBlocks) {
    return std::nullopt;
  }
  const FloorPoint& last = judged.floor.back();
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

std::optional<double> late_growth(const SeriesVerdict& judged) {
  if (judged.floor.size() < kFewestBlocks) {
    return std::nullopt;
  }
  const auto begin = judged.floor.begin() + static_cast<std::ptrdiff_t>(judged.floor.size() / 3);
  const auto highest = std::max_element(
      begin, judged.floor.end(),
      [](const FloorPoint& a, const FloorPoint& b) { return a.floor_bytes < b.floor_bytes; });
  return highest->floor_bytes - begin->floor_bytes;
}

MeasuredGrowth measure_growth(const SeriesVerdict& judged) {
  MeasuredGrowth growth;
  growth.verdict = judged.verdict;
  growth.undetermined = judged.undetermined;
  growth.needs = judged.needs;
  growth.smallest_detectable_per_s = judged.smallest_detectable_per_s;
  growth.smallest_detectable_per_step = judged.smallest_detectable_per_step;
  growth.axis = judged.axis;
  if (const Pattern* const pattern =
          judged.find({PatternKind::kLeak, PatternKind::kGrowth, PatternKind::kDrift})) {
    growth.kind = pattern->kind;
    growth.rate = pattern->rate;
    if (pattern->kind == PatternKind::kGrowth) {
      growth.rate = rate_after_allowance(judged).value_or(pattern->rate);
    }
  }
  growth.late_bytes = late_growth(judged);
  growth.knows_steps = judged.axis == Axis::kSteps || growth.rate.bytes_per_step ||
                       growth.smallest_detectable_per_step;
  return growth;
}

// The curve of the whole tree; where there is none, the one that gave the answer.
const TrackVerdict& whole(const RunTracks& run, const RunVerdict& verdict) {
  const auto tree =
      std::find_if(verdict.tracks.begin(), verdict.tracks.end(), [&](const TrackVerdict& judged) {
        return run.tracks[judged.track].kind == TrackKind::kTree;
      });
  return tree == verdict.tracks.end() ? verdict.answer() : *tree;
}

// Where the floor had come to. The very last of it may be a shell that is left alone for a moment.
double plateau_of(const SeriesVerdict& judged) {
  const std::size_t count = judged.floor.size();
  std::vector<double> last;
  for (std::size_t i = count - count / 3; i < count; ++i) {
    last.push_back(judged.floor[i].floor_bytes);
  }
  return std::max(judged.last_floor_bytes, median(std::move(last)));
}

}  // namespace

std::optional<RunMeasure> measure_run(const RunTracks& run,
                                      const std::optional<RunVerdict>& verdict) {
  if (!verdict) {
    return std::nullopt;
  }
  const TrackVerdict& tree = whole(run, *verdict);
  RunMeasure measure;
  measure.growth = measure_growth(verdict->answer().series);
  measure.plateau_bytes = plateau_of(tree.series);
  measure.has_settled = !tree.series.undetermined && tree.series.verdict < Verdict::kGrowing;
  measure.peak_bytes = tree.series.max_bytes;
  for (const Cell& cell : run.tracks[tree.track].of(tree.metric).cells()) {
    measure.peak_bytes = std::max(measure.peak_bytes, cell.max_bytes);
  }
  measure.most_processes = run.tracks[tree.track].most_processes;
  return measure;
}

namespace {

bool is_about_growth(BudgetKind kind) {
  return kind == BudgetKind::kGrowth || kind == BudgetKind::kGpuGrowth;
}

// Of two rows of one state, the one that says more.
bool is_more(const BudgetRow& a, const BudgetRow& b) {
  const auto weight = [](const BudgetRow& row) {
    return (is_about_growth(row.kind) && row.low ? row.low : row.measured).value_or(0.0);
  };
  return weight(a) > weight(b);
}

BudgetRow* find(BudgetRows& rows, BudgetKind kind) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const BudgetRow& row) { return row.kind == kind; });
  return found == rows.end() ? nullptr : &*found;
}

void sort_by_kind(BudgetRows& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const BudgetRow& a, const BudgetRow& b) { return a.kind < b.kind; });
}

BudgetDoubt doubt_of(const MeasuredGrowth& growth) {
  return growth.verdict == Verdict::kGrowing ? BudgetDoubt::kStillGrowing : BudgetDoubt::kTooFew;
}

void doubt(BudgetRow& row, BudgetDoubt why) {
  row.state = BudgetState::kUndetermined;
  row.doubt = why;
}

void set_rate(BudgetRow& row, const GrowthRate& rate) {
  const bool by_step = row.unit == BudgetUnit::kBytesPerStep;
  row.measured = by_step ? rate.bytes_per_step : rate.bytes_per_s;
  row.low = by_step ? rate.low_bytes_per_step : rate.low_bytes_per_s;
  row.high = by_step ? rate.high_bytes_per_step : rate.high_bytes_per_s;
}

BudgetRow judge_level(BudgetKind kind, double measured, double limit,
                      BudgetUnit unit = BudgetUnit::kBytes) {
  BudgetRow row;
  row.kind = kind;
  row.unit = unit;
  row.measured = measured;
  row.limit = limit;
  row.state = measured > limit ? BudgetState::kExceeded : BudgetState::kWithin;
  return row;
}

BudgetRow no_sample(BudgetKind kind, std::optional<double> limit) {
  BudgetRow row;
  row.kind = kind;
  row.limit = limit;
  doubt(row, BudgetDoubt::kNoSample);
  return row;
}

BudgetRow judge_plateau(BudgetKind kind, const RunMeasure& measure, double limit) {
  BudgetRow row = judge_level(kind, measure.plateau_bytes, limit);
  const bool may_go_on = measure.growth.undetermined && !measure.has_settled;
  if (row.state == BudgetState::kWithin && may_go_on) {
    doubt(row, doubt_of(measure.growth));
    row.needs = measure.growth.needs;
  }
  return row;
}

struct MemoryKinds {
  BudgetKind peak;
  BudgetKind plateau;
  BudgetKind retained;
};

void judge_memory(BudgetRows& rows, const MemoryKinds& kinds, const MemoryBudgets& budgets,
                  const std::optional<RunMeasure>& measure, const std::optional<double>& retained) {
  if (budgets.peak_bytes) {
    rows.push_back(measure ? judge_level(kinds.peak, measure->peak_bytes, *budgets.peak_bytes)
                           : no_sample(kinds.peak, budgets.peak_bytes));
  }
  if (budgets.plateau_bytes) {
    rows.push_back(measure ? judge_plateau(kinds.plateau, *measure, *budgets.plateau_bytes)
                           : no_sample(kinds.plateau, budgets.plateau_bytes));
  }
  if (budgets.retained_bytes) {
    rows.push_back(retained ? judge_level(kinds.retained, *retained, *budgets.retained_bytes)
                            : no_sample(kinds.retained, budgets.retained_bytes));
  }
}

}  // namespace

namespace {

// A budget per step of a run of which no steps are known, but that it had some: no growth is within
// it, and so is what a single step may have grown by.
void judge_without_steps(BudgetRow& row, const MeasuredGrowth& growth) {
  if (!growth.kind && !growth.undetermined) {
    return;
  }
  if (!growth.late_bytes || !growth.kind) {
    doubt(row, doubt_of(growth));
    row.needs = growth.needs;
  } else if (*growth.late_bytes > row.limit) {
    doubt(row, BudgetDoubt::kStepsUnknown);
  }
}

}  // namespace

BudgetRow judge_growth(BudgetKind kind, const std::optional<RunMeasure>& measure,
                       const std::optional<Rate>& limit) {
  BudgetRow row;
  row.kind = kind;
  // Nothing is nothing in every unit.
  const bool has_unit = limit && limit->bytes > 0.0;
  const bool by_step =
      has_unit ? limit->unit == RateUnit::kStep : measure && measure->growth.axis == Axis::kSteps;
  row.unit = by_step ? BudgetUnit::kBytesPerStep : BudgetUnit::kBytesPerSecond;
  if (limit) {
    row.limit = limit->bytes_per_unit();
  }
  if (!measure) {
    doubt(row, BudgetDoubt::kNoSample);
    return row;
  }
  const MeasuredGrowth& growth = measure->growth;
  if (by_step && !growth.knows_steps) {
    judge_without_steps(row, growth);
    return row;
  }
  set_rate(row, growth.rate);
  const double most = row.limit.value_or(0.0);
  // A drift is too slow to be called a leak; whoever sets a budget below it wants to know it all
  // the same.
  const bool may_fail =
      growth.verdict == Verdict::kLeak || (growth.kind == PatternKind::kDrift && most > 0.0);
  const bool surely_within = growth.kind && most > 0.0 && row.high && *row.high <= most;
  if (may_fail && row.low.value_or(0.0) > most) {
    row.state = BudgetState::kExceeded;
  } else if (growth.undetermined && !surely_within) {
    doubt(row, doubt_of(growth));
    row.needs = growth.needs;
  }
  return row;
}

BudgetRows judge_budgets(const Budgets& budgets, const MeasuredRun& run) {
  constexpr MemoryKinds kMemory{BudgetKind::kPeak, BudgetKind::kPlateau, BudgetKind::kRetained};
  constexpr MemoryKinds kGpu{BudgetKind::kGpuPeak, BudgetKind::kGpuPlateau,
                             BudgetKind::kGpuRetained};
  BudgetRows rows;
  if (!budgets.memory.growth_is_off) {
    BudgetRow row = judge_growth(BudgetKind::kGrowth, run.memory, budgets.memory.growth);
    const bool was_asked = budgets.memory.growth || !budgets.any();
    if (was_asked || row.state == BudgetState::kExceeded) {
      rows.push_back(row);
    }
  }
  judge_memory(rows, kMemory, budgets.memory, run.memory, run.retained.bytes);
  if (budgets.processes) {
    rows.push_back(run.memory ? judge_level(BudgetKind::kProcesses, run.memory->most_processes,
                                            *budgets.processes, BudgetUnit::kCount)
                              : no_sample(BudgetKind::kProcesses, budgets.processes));
  }
  if (budgets.gpu.growth) {
    rows.push_back(judge_growth(BudgetKind::kGpuGrowth, run.gpu, budgets.gpu.growth));
  }
  judge_memory(rows, kGpu, budgets.gpu, run.gpu, run.retained.gpu_bytes);
  if (run.was_interrupted) {
    for (BudgetRow& row : rows) {
      if (row.state == BudgetState::kWithin) {
        doubt(row, BudgetDoubt::kInterrupted);
      }
    }
  }
  sort_by_kind(rows);
  return rows;
}

BudgetRow judge_jobs(std::span<const double> retained_bytes, double limit_bytes) {
  BudgetRow row;
  row.kind = BudgetKind::kJobGrowth;
  row.limit = limit_bytes;
  if (retained_bytes.size() < 2) {
    doubt(row, BudgetDoubt::kTooFew);
    return row;
  }
  std::vector<double> added(retained_bytes.size());
  std::adjacent_difference(retained_bytes.begin(), retained_bytes.end(), added.begin());
  added.erase(added.begin());
  row.measured = (retained_bytes.back() - retained_bytes.front()) /
                 static_cast<double>(retained_bytes.size() - 1);
  row.low = *std::min_element(added.begin(), added.end());
  row.high = *std::max_element(added.begin(), added.end());
  row.state = *row.low > limit_bytes ? BudgetState::kExceeded : BudgetState::kWithin;
  return row;
}

BudgetRows worst_of(std::span<const BudgetRows> jobs) {
  BudgetRows worst;
  for (const BudgetRows& rows : jobs) {
    for (const BudgetRow& row : rows) {
      BudgetRow* const known = find(worst, row.kind);
      if (known == nullptr) {
        worst.push_back(row);
      } else if (row.state != known->state ? row.state > known->state : is_more(row, *known)) {
        *known = row;
      }
    }
  }
  sort_by_kind(worst);
  return worst;
}

BudgetRows best_of(std::span<const BudgetRows> repeats) {
  if (repeats.empty()) {
    return {};
  }
  BudgetRows best = repeats.front();
  for (BudgetRows rows : repeats.subspan(1)) {
    // A repeat that has no such row has nothing to tell about it.
    std::erase_if(best, [&](const BudgetRow& row) { return find(rows, row.kind) == nullptr; });
    for (BudgetRow& known : best) {
      const BudgetRow& row = *find(rows, known.kind);
      if (row.state != known.state ? row.state < known.state : is_more(known, row)) {
        known = row;
      }
    }
  }
  return best;
}

BudgetState state_of(std::span<const BudgetRow> rows) {
  BudgetState worst = BudgetState::kWithin;
  for (const BudgetRow& row : rows) {
    worst = std::max(worst, row.state);
  }
  return worst;
}

std::string_view budget_name(BudgetKind kind) {
  switch (kind) {
    case BudgetKind::kGrowth:
      return "max_growth";
    case BudgetKind::kPeak:
      return "max_peak";
    case BudgetKind::kPlateau:
      return "max_plateau";
    case BudgetKind::kProcesses:
      return "max_processes";
    case BudgetKind::kRetained:
      return "max_retained";
    case BudgetKind::kJobGrowth:
      return "max_job_growth";
    case BudgetKind::kGpuGrowth:
      return "gpu_max_growth";
    case BudgetKind::kGpuPeak:
      return "gpu_max_peak";
    case BudgetKind::kGpuPlateau:
      return "gpu_max_plateau";
    case BudgetKind::kGpuRetained:
      return "gpu_max_retained";
    case BudgetKind::kBaselineGrowth:
      return "baseline_growth";
    case BudgetKind::kBaselinePlateau:
      return "baseline_plateau";
    case BudgetKind::kBaselinePeak:
      return "baseline_peak";
  }
  return "";
}

std::string_view budget_state_name(BudgetState state) {
  switch (state) {
    case BudgetState::kWithin:
      return "within";
    case BudgetState::kSuppressed:
      return "suppressed";
    case BudgetState::kUndetermined:
      return "undetermined";
    case BudgetState::kExceeded:
      return "exceeded";
  }
  return "";
}

std::string_view budget_doubt_name(BudgetDoubt doubt) {
  switch (doubt) {
    case BudgetDoubt::kNone:
      return "none";
    case BudgetDoubt::kNoSample:
      return "no_sample";
    case BudgetDoubt::kTooFew:
      return "too_few";
    case BudgetDoubt::kStillGrowing:
      return "still_growing";
    case BudgetDoubt::kStepsUnknown:
      return "steps_unknown";
    case BudgetDoubt::kInterrupted:
      return "interrupted";
  }
  return "";
}

std::string_view budget_unit_name(BudgetUnit unit) {
  switch (unit) {
    case BudgetUnit::kBytes:
      return "bytes";
    case BudgetUnit::kBytesPerSecond:
      return "bytes_per_s";
    case BudgetUnit::kBytesPerStep:
      return "bytes_per_step";
    case BudgetUnit::kCount:
      return "count";
  }
  return "";
}

}  // namespace tidemark::tracker
