// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/recording_sink.h"
#include "tracker/curve/series.h"
#include "tracker/curve/step_clock.h"

namespace tidemark::tracker {

inline double as_double(std::uint64_t bytes) { return static_cast<double>(bytes); }

// One call stack of one process, over time.
struct SiteTrack {
  SiteRecord record;
  SiteSample last;     // as it was while its process ran
  SiteSample highest;  // when it held most
  std::optional<SiteAges> ages;
  double first_seen_s = 0.0;
  std::uint64_t first_live_bytes = 0;
  Series live;
};

// A process that the tracer was in, over time.
struct TracedProcess {
  ProcessKey key;
  Role role = Role::kOther;
  std::optional<int> rank;
  std::string comm;  // raw bytes
  TraceSample last;  // as it was while the process ran, but for what counts up
  double first_sample_s = 0.0;
  double last_sample_s = 0.0;
  std::vector<std::size_t> sites;  // into RunSites::sites
  Series live;                     // bytes of all sites
  Series footprint;
  Series file;    // resident pages of files
  Series shared;  // resident shared memory
  Series blocks;  // these three: see MemoryAccount
  Series slack;
  Series unhooked;
};

// What the allocation tracer saw of a run.
struct RunSites {
  std::vector<SiteTrack> sites;
  std::vector<TracedProcess> processes;  // in the order in which they came
  std::unordered_map<std::uint32_t, FrameRecord> frames;
  std::unordered_map<std::uint32_t, ModuleRecord> modules;
  std::optional<std::int64_t> last_step;
  std::optional<double> epoch_steps;  // length of one marked epoch
  std::optional<double> epoch_seconds;
  ShmGrowthReport shm;
  std::vector<std::pair<std::string, std::uint64_t>> losses;  // each id once
  double end_s = 0.0;

  bool empty() const { return processes.empty(); }
};

// Turns a run, tick by tick, into the curves of its allocation sites. The same ticks give the same
// curves, live or from a file. Memory is bounded by the sites that the run has samples of, which
// the collector limits.
class SiteTrackBuilder final : public RecordingSink {
 public:
  static constexpr std::size_t kCells = 256;  // of one curve

  Status begin(const RunInfo& info) override;
  Status add(const Tick& tick) override;
  Status process_ended(const ProcessRecord& process) override;
  Status end(double t_s) override;

  const RunSites& sites() const { return run_; }

 private:
  struct Known {
    Role role = Role::kOther;
    std::optional<int> rank;
    std::string comm;
  };

  void take_record(const ProcessRecord& process);
  void take_record(const SiteRecord& site);
  void take_sample(const TraceSample& trace);
  void take_memory(const ProcessSample& sample);
  void take_account(const MemoryAccount& account);
  void take_marker(const MarkerRecord& marker);
  void take_loss(const LossRecord& loss);
  std::size_t process_of(const ProcessKey& key, double t_s);

  RunSites run_;
  std::unordered_map<ProcessKey, Known> known_;
  std::unordered_map<ProcessKey, std::size_t> processes_;   // those that are traced now
  std::unordered_map<std::uint32_t, std::size_t> numbers_;  // of sites
  std::unordered_map<std::uint32_t, SiteSample> current_;
  StepClock clock_;
  EpochLength epochs_;
  std::optional<ProcessKey> step_source_;  // pid 0: a log
};

// The value of a curve at a time: that of the last sample until then. nullopt before the first.
std::optional<double> value_at(const Series& series, double t_s);
// How old that value is, in seconds.
std::optional<double> age_at(const Series& series, double t_s);

}  // namespace tidemark::tracker
