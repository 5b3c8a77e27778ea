// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/recording_sink.h"
#include "common/records.h"
#include "common/step_count.h"
#include "tracker/curve/step_clock.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {

// Who holds the segments of /dev/shm is looked up now and then, and what was found is repeated in
// every tick until the next look. While /dev/shm changes, a repeated figure is no sample of now: a
// straight rise would look like steps.
class ShmFreshness {
 public:
  static constexpr double kLongestRepeatSeconds = 10.0;

  // Of each tick in turn. `used_bytes`: of /dev/shm as a whole, which is always of now.
  bool is_fresh(double t_s, std::uint64_t unheld_bytes, std::optional<std::uint64_t> used_bytes);

 private:
  std::optional<double> fresh_s_;
  std::uint64_t unheld_bytes_ = 0;
  std::optional<std::uint64_t> used_bytes_;  // of the tick before
};

// Adds up the GPU figures of a run's ticks.
class GpuTotals {
 public:
  struct Figures {
    std::unordered_map<pid_t, double> by_pid;  // over all devices
    std::optional<double> devices_bytes;       // all that the devices hold
  };
  // nullopt: no figures, or those of an earlier tick again.
  std::optional<Figures> take(const Tick& tick);

  // What is there for the tree on the GPU that it uses; nullopt unless that is one.
  const std::optional<double>& limit_bytes() const { return limit_bytes_; }
  const std::string& limit_source() const { return limit_source_; }

 private:
  void update_limit(const Tick& tick);

  double read_s_ = -1.0;          // when the figures that were taken last were read
  std::set<std::uint32_t> used_;  // by the tree, at any time
  std::optional<double> limit_bytes_;
  std::string limit_source_;
};

// What torch's allocator says of itself, by the gauges of the processes.
class TorchTotals {
 public:
  struct Memory {
    std::optional<double> allocated_bytes;
    std::optional<double> reserved_bytes;
  };

  void take(const MarkerRecord& gauge);
  void forget(const ProcessKey& process) { by_process_.erase(process); }

  // The processes that have sent a gauge since the last call.
  std::vector<ProcessKey> take_changed();
  Memory of(const ProcessKey& process) const;
  Memory sum() const;

 private:
  std::unordered_map<ProcessKey, Memory> by_process_;
  std::vector<ProcessKey> changed_;
};

// Turns a run, tick by tick, into the curves that the tracker judges, in a bounded amount of
// memory. The same ticks give the same curves, live or from a file.
//
// Where steps are marked, a sample lies between two steps: it is held back until the next marker
// tells where.
class TrackBuilder final : public RecordingSink {
 public:
  // Further processes are part of their role only, and counted as a loss. Trainers and ranks come
  // first: for them there is as much room again.
  static constexpr std::size_t kMostProcesses = 256;
  static constexpr std::size_t kMostEvents = 10'000;

  Status begin(const RunInfo& info) override;
  Status add(const Tick& tick) override;
  Status process_ended(const ProcessRecord& process) override;
  Status end(double t_s) override;

  // What has come so far, as if the run ended here.
  RunTracks tracks() const;
  // The same, once, without a copy.
  RunTracks take();

 private:
  static constexpr std::size_t kNoTrack = static_cast<std::size_t>(-1);
  static constexpr std::size_t kMostHeld = 1U << 17U;

  struct Known {
    Role role = Role::kOther;
    std::optional<int> rank;
    std::size_t track = kNoTrack;
    double pss_read_s = -1.0;  // when the shares were last read, as far as they are in the curves
    std::optional<std::uint64_t> hwm_bytes;  // highest resident size so far
    double unseen_bytes = 0.0;  // of this tick: what it had in between beyond what was sampled

    void take_peak(const ProcessSample& sample);
  };
  struct Held {
    double t_s;
    std::size_t track;
    Metric metric;
    double bytes;
    double unseen_bytes;
  };

  Known& find_or_add(const ProcessKey& key);
  void take_process(const ProcessRecord& process);
  std::size_t track_for(const ProcessRecord& process);
  std::size_t room_for_process(bool is_important);
  std::size_t track_of_role(Role role);
  void forget_curves(std::size_t track);

  void take_event(const EventRecord& event);
  void take_markers(const Tick& tick, bool late);
  void take_marker(const MarkerRecord& marker, const Tick& tick);
  bool is_step_source(const ProcessKey& key);
  void place_held_before_last_step();
  void keep_event(RunEvent event);
  void take_loss(std::string_view what, std::uint64_t count);

  void add_group(std::size_t track, const GroupSample& sum, double unseen_bytes);
  void add_process(const ProcessSample& sample);
  void add_gpus(const Tick& tick);
  void add_torch();
  void put(std::size_t track, Metric metric, double bytes, double unseen_bytes = 0.0);
  void put(std::size_t track, Metric metric, const std::optional<std::uint64_t>& bytes,
           double unseen_bytes = 0.0);

  void finish(RunTracks& run) const;

  bool time_is_steps_ = false;
  std::optional<double> begin_s_;  // of the first tick, once it was taken
  RunTracks run_;                  // its tracks in the order in which they were met
  std::optional<std::size_t> tree_;
  std::optional<std::size_t> shm_;
  ShmFreshness shm_freshness_;
  GpuTotals gpu_;
  TorchTotals torch_;
  std::array<std::size_t, kRoleCount> roles_{};
  std::vector<std::size_t> process_tracks_;
  std::unordered_map<ProcessKey, Known> processes_;
  std::map<std::string, std::uint64_t, std::less<>> losses_;

  // Of the tick that is being taken.
  double now_s_ = 0.0;
  double t_s_ = kUnknown;
  double step_ = kUnknown;

  StepClock clock_;
  std::optional<ProcessKey> step_source_;  // pid 0: a log
  std::deque<Held> held_;                  // in the order of time
  StepCount tick_steps_;                   // of recordings that know the step of a sample only
  EpochLength epochs_;
};

}  // namespace tidemark::tracker
