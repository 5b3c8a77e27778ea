// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/recording_sink.h"
#include "tracker/curve/step_clock.h"
#include "tracker/sites/step_times.h"
#include "tracker/sites/untraced_tracks.h"

namespace tidemark::tracker {

// What an owner held at one look. Unlike a sample it has no text.
struct OwnerPoint {
  double t_s = 0.0;
  double step = kUnknown;
  std::size_t look = 0;  // of its process, from 0 on
  double grown_bytes = 0.0;
  std::optional<std::uint64_t> entries;
};

// One owner of one process, over time.
struct OwnerTrack {
  OwnerRecord record;
  std::vector<OwnerPoint> points;  // of the looks that named it
  OwnerSample last;
};

// A process whose heap was looked at, over time.
struct LookedProcess : ProcessLabel {
  ProcessKey key;
  std::vector<HeapLook> looks;       // those that found something, in the order of time
  std::vector<HeapLook> failed;      // those that found nothing; the last ones
  std::uint64_t looks_left_out = 0;  // when there were too many, every second one was
  std::vector<std::size_t> owners;   // into RunOwners::owners
  std::optional<double> exited_s;
  // At the first look and at the last one.
  std::vector<TypeSample> first_types;
  std::vector<TypeSample> last_types;
  std::vector<TensorSample> first_tensors;
  std::vector<TensorSample> last_tensors;

  // nullopt: not known at the first or the last look.
  std::optional<double> footprint_growth() const;
};

// What looks at the heap saw of a run.
struct RunOwners {
  std::vector<OwnerTrack> owners;
  std::vector<LookedProcess> processes;  // in the order in which they came
  StepTimes steps;
  std::optional<double> epoch_steps;  // length of one marked epoch
  std::optional<double> epoch_seconds;
  std::vector<std::pair<std::string, std::uint64_t>> losses;  // each id once
  double end_s = 0.0;
  std::optional<double> oom_kill_s;  // the last time at which the kernel's OOM killer was seen

  bool empty() const { return processes.empty(); }
};

// Turns a run, tick by tick, into what each owner held. The same ticks give the same result, live
// or from a file. Memory is bounded.
class OwnerTrackBuilder final : public RecordingSink {
 public:
  static constexpr std::size_t kMostLooks = 1024;  // of one process; then every second one goes
  static constexpr std::size_t kMostProcesses = 256;
  static constexpr std::size_t kMostOwners = 4096;  // of all processes

  Status begin(const RunInfo& info) override;
  Status add(const Tick& tick) override;
  Status process_ended(const ProcessRecord& process) override;
  Status end(double t_s) override;

  const RunOwners& owners() const { return run_; }

 private:
  using OwnerId = std::pair<ProcessKey, std::uint32_t>;

  void take_marker(const MarkerRecord& marker);
  void take_record(const OwnerRecord& owner);
  void take_look(const HeapFacts::OfProcess& of);
  void take_samples(const HeapFacts::OfProcess& of, const LookedProcess& process);
  void take_loss(const LossRecord& loss);
  LookedProcess* process_of(const ProcessKey& key);
  void thin_out(LookedProcess& process);
  double step_at(const HeapLook& look) const;

  RunOwners run_;
  std::unordered_map<ProcessKey, ProcessLabel> labels_;
  std::unordered_map<ProcessKey, std::size_t> processes_;
  std::map<OwnerId, std::size_t> numbers_;
  EpochLength epochs_;
  std::optional<ProcessKey> step_source_;  // pid 0: a log
};

}  // namespace tidemark::tracker
