// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

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
  kCompileWorkers,  // processes like those of torch.compile
  kDataloaderCow,   // forked workers that write to pages of a shared dataset
  kReplay,          // one of the curves of replay_curves.h
};
inline constexpr std::array<std::string_view, 10> kScenarioNames = {
    "steady",   "warmup",        "spikes",          "leak",           "staircase",
    "sawtooth", "fragmentation", "compile-workers", "dataloader-cow", "replay"};
inline std::string_view name_of(Scenario scenario) {
  return kScenarioNames[static_cast<std::size_t>(scenario)];
}

// What holds the memory of a leak.
enum class Cause {
  kCollator,   // batches that were retained
  kAutograd,   // a loss that was kept with its graph
  kOptimizer,  // state for parameters that are added at every step
  kNative,     // malloc without free, three calls deep in another library
  kShm,        // segments of /dev/shm that nobody unlinks
  kPinned,     // pinned host buffers; on the CPU, locked ones
};
inline constexpr std::array<std::string_view, 6> kCauseNames = {"collator", "autograd", "optimizer",
                                                                "native",   "shm",      "pinned"};
inline std::string_view name_of(Cause cause) {
  return kCauseNames[static_cast<std::size_t>(cause)];
}

enum class Replay { kJob1, kJob2, kValspike, kSlowleak, kCatastrophic };
inline constexpr std::array<std::string_view, 5> kReplayNames = {"job1", "job2", "valspike",
                                                                 "slowleak", "catastrophic"};
inline std::string_view name_of(Replay replay) {
  return kReplayNames[static_cast<std::size_t>(replay)];
}

enum class Device { kAuto, kCpu, kCuda };
inline constexpr std::array<std::string_view, 3> kDeviceNames = {"auto", "cpu", "cuda"};

// Everything a run depends on. plan_run() chooses what is not set.
struct TrainerOptions {
  std::set<Scenario> scenarios = {Scenario::kSteady};
  std::optional<std::uint64_t> steps;
  double step_time_s = 0.05;
  double mb = 200;  // how much memory the scenario uses in all, in MiB
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

}  // namespace tidemark::harness
