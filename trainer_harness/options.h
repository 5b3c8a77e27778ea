// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "common/result.h"

namespace tidemark::harness {

// What the memory of a run does. A run may do several at once.
enum class Scenario {
  kSteady,
  kWarmup,          // a per-sample cache is filled during the first epoch
  kSpikes,          // each evaluation loads the whole evaluation set
  kLeak,            // every step keeps something; see Cause
  kStaircase,       // every checkpoint keeps a copy
  kSawtooth,        // cycles that are collected every few steps
  kFragmentation,   // freed, yet resident
  kCompileWorkers,  // processes as torch.compile starts them
  kDataloaderCow,   // forked workers that write to pages of a shared dataset
  kReplay,          // one of the curves of replay_curves.h
};
std::string_view name_of(Scenario scenario);

// Who keeps the memory of a leak.
enum class Cause {
  kCollator,   // batches that were retained
  kAutograd,   // a loss that was kept with its graph
  kOptimizer,  // state for parameters that are added at every step
  kNative,     // malloc without free, three calls deep in another library
  kShm,        // segments of /dev/shm that nobody unlinks
  kPinned,     // pinned host buffers; on the CPU, locked ones
};
std::string_view name_of(Cause cause);

enum class Replay { kJob1, kJob2, kValspike, kSlowleak, kCatastrophic };
std::string_view name_of(Replay replay);

enum class Device { kAuto, kCpu, kCuda };

// Everything a run depends on. Plain data; what is not set is chosen by plan_run().
struct TrainerOptions {
  std::set<Scenario> scenarios = {Scenario::kSteady};
  std::optional<std::uint64_t> steps;
  double step_time_s = 0.05;
  double mb = 200;  // what the scenario moves in all, in MiB
  std::uint64_t seed = 1;
  Device device = Device::kAuto;
  std::uint64_t batch = 8;
  std::uint64_t log_every = 10;

  std::optional<std::uint64_t> eval_every;
  std::optional<std::uint64_t> cleanup_every;

  Cause cause = Cause::kCollator;
  std::optional<double> mb_per_step;
  std::optional<std::uint64_t> from_step;
  bool keep_shm = false;  // leave the segments of the leak behind

  std::uint64_t workers = 4;
  double worker_mb = 40;
  bool quiesce = false;  // the pool quits halfway

  Replay replay = Replay::kJob1;
  double scale = 0.05;

  bool wrapper = false;
  std::string truth_path;  // each path: empty is none
  std::string checkpoint_path;
  std::string resume_path;
  std::optional<int> progress_fd;
  std::optional<std::uint64_t> crash_at_step;
};

// The words after `tidemark-harness train`: the scenario (or several, joined by '+'), then flags.
Result<TrainerOptions> parse_trainer_options(std::span<const std::string> words);

// What those words may be.
std::string trainer_usage();

}  // namespace tidemark::harness
