// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/units.h"
#include "tracker/curve/series_verdict.h"
#include "tracker/run/run_tracks.h"
#include "tracker/run/run_verdict.h"

namespace tidemark::tracker {

// How a run grew, by the curve that gave its verdict.
struct MeasuredGrowth {
  Verdict verdict = Verdict::kStable;
  bool undetermined = false;
  std::optional<Needs> needs;  // of what is undetermined
  // Of a leak, of growth that may end, or of a drift; nullopt: none was seen.
  std::optional<PatternKind> kind;
  GrowthRate rate;
  // A leak of this size would have been seen.
  std::optional<double> smallest_detectable_per_s;
  std::optional<double> smallest_detectable_per_step;
  Axis axis = Axis::kTime;
  bool knows_steps = false;
  // By how much its floor rose in the last two thirds of the run; nullopt: too few samples.
  std::optional<double> late_bytes;
};

// A run in the few numbers that budgets and baselines are about: of the whole tree, on one metric.
struct RunMeasure {
  MeasuredGrowth growth;
  double peak_bytes = 0.0;     // the highest sample, teardown included
  double plateau_bytes = 0.0;  // the floor at the end, but for a last moment
  // Nothing grows any more: the plateau is one. Of a leak it is where it had come to.
  bool has_settled = false;
  std::uint32_t most_processes = 0;
};

// nullopt: nothing could be judged.
std::optional<RunMeasure> measure_run(const RunTracks& run,
                                      const std::optional<RunVerdict>& verdict);

// What a run may use, and whether it kept to that: the decisions of `tidemark check`.

// In the order of tables.
enum class BudgetKind {
  kGrowth,
  kPeak,
  kPlateau,
  kProcesses,
  kRetained,   // left behind by the command: stray processes, segments of shared memory
  kJobGrowth,  // what one job leaves more than the one before
  kGpuGrowth,
  kGpuPeak,
  kGpuPlateau,
  kGpuRetained,
  kBaselineGrowth,  // against the runs of a baseline
  kBaselinePlateau,
  kBaselinePeak,
};

// The better, the lower: what a budget came to.
enum class BudgetState { kWithin, kSuppressed, kUndetermined, kExceeded };

// Why a budget is undetermined.
enum class BudgetDoubt {
  kNone,
  kNoSample,      // nothing was measured
  kTooFew,        // samples
  kStillGrowing,  // warm-up explains it as well as a leak
  kStepsUnknown,  // the budget counts steps
  kInterrupted,   // the run was stopped before its end
};

enum class BudgetUnit { kBytes, kBytesPerSecond, kBytesPerStep, kCount };

// One line of the answer.
struct BudgetRow {
  BudgetKind kind = BudgetKind::kGrowth;
  BudgetState state = BudgetState::kWithin;
  BudgetUnit unit = BudgetUnit::kBytes;
  std::optional<double> measured;
  std::optional<double> low;  // 95 % interval of what was measured, where it has one
  std::optional<double> high;
  std::optional<double> limit;  // nullopt: the budget is "no leak"
  BudgetDoubt doubt = BudgetDoubt::kNone;
  std::optional<Needs> needs;
};

using BudgetRows = std::vector<BudgetRow>;

struct MemoryBudgets {
  std::optional<Rate> growth;
  bool growth_is_off = false;
  std::optional<double> peak_bytes;
  std::optional<double> plateau_bytes;
  std::optional<double> retained_bytes;

  bool any() const { return growth || peak_bytes || plateau_bytes || retained_bytes; }
};

struct Budgets {
  MemoryBudgets memory;  // without a rate for growth, and with growth not off: no leak
  MemoryBudgets gpu;     // without a rate for growth: growth is not judged
  std::optional<double> processes;
  std::optional<double> job_growth_bytes;
  bool has_baseline = false;  // the run is compared with earlier ones as well

  bool any() const {
    return memory.any() || gpu.any() || processes || job_growth_bytes || has_baseline;
  }
};

// What is left when a command has ended.
struct Retained {
  double bytes = 0.0;
  std::optional<double> gpu_bytes;  // nullopt: no GPU was seen
};

// One run, measured. nullopt: there was nothing to judge.
struct MeasuredRun {
  std::optional<RunMeasure> memory;
  std::optional<RunMeasure> gpu;
  Retained retained;
  bool was_interrupted = false;
};

// The growth that counts: per step or per second, as the budget has it.
BudgetRow judge_growth(BudgetKind kind, const std::optional<RunMeasure>& measure,
                       const std::optional<Rate>& limit);
// All rows of one run, in order. Where there are budgets but none for growth, growth
// that is undetermined is left out: only a leak is reported.
BudgetRows judge_budgets(const Budgets& budgets, const MeasuredRun& run);
// What each job left behind, beside what the one before did. It is too much when each job after the
// first adds more than the limit; needs two jobs.
BudgetRow judge_jobs(std::span<const double> retained_bytes, double limit_bytes);

// Several jobs of one run: the worst of each budget.
BudgetRows worst_of(std::span<const BudgetRows> jobs);
// Several repeats: too much is only what was too much in each of them.
BudgetRows best_of(std::span<const BudgetRows> repeats);

// The worst of all rows; of none: within.
BudgetState state_of(std::span<const BudgetRow> rows);

// "max_growth", "gpu_max_peak", "baseline_plateau", ...; "within", ...: they are in JSON and never
// change.
std::string_view budget_name(BudgetKind kind);
std::string_view budget_state_name(BudgetState state);
std::string_view budget_doubt_name(BudgetDoubt doubt);
std::string_view budget_unit_name(BudgetUnit unit);

}  // namespace tidemark::tracker
