// SPDX-License-Identifier: Apache-2.0
#include "tracker/compare/budget.h"

#include <algorithm>
#include <numeric>

namespace tidemark::tracker {
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
    doubt(row, BudgetDoubt::kStepsUnknown);
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
