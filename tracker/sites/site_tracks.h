// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/recording_sink.h"
#include "tracker/curve/series.h"
#include "tracker/curve/step_clock.h"
#include "tracker/sites/python_code.h"
#include "tracker/sites/step_times.h"
#include "tracker/sites/untraced_tracks.h"

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
struct TracedProcess : ProcessLabel {
  ProcessKey key;
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

// Processes that have exited and are not listed any more: how many, and what counts up.
struct ForgottenProcesses {
  std::uint64_t processes = 0;
  std::uint64_t sites = 0;
  std::uint64_t freed_blocks = 0;
  std::uint64_t unknown_frees = 0;
  std::uint64_t dropped_records = 0;
  std::uint64_t truncated_stacks = 0;
  std::uint64_t empty_stacks = 0;
};

// What the allocation tracer saw of a run.
struct RunSites {
  std::vector<SiteTrack> sites;
  // In the order in which they came. Of those that have exited the ones that held most.
  std::vector<TracedProcess> processes;
  ForgottenProcesses forgotten;
  UntracedTracks untraced;
  StepTimes steps;
  std::unordered_map<std::uint32_t, FrameRecord> frames;
  std::unordered_map<std::uint32_t, ModuleRecord> modules;
  FileNames file_names;
  std::optional<std::int64_t> last_step;
  std::optional<double> epoch_steps;  // length of one marked epoch
  std::optional<double> epoch_seconds;
  ShmGrowthReport shm;
  std::vector<std::pair<std::string, std::uint64_t>> losses;  // each id once
  double end_s = 0.0;

  // Also where there are only call stacks of what owners hold: nobody has followed them over time.
  bool empty() const {
    return std::all_of(processes.begin(), processes.end(),
                       [](const TracedProcess& process) { return process.live.empty(); });
  }
  std::uint64_t traced_processes() const { return processes.size() + forgotten.processes; }
};

// Turns a run, tick by tick, into the curves of its allocation sites. The same ticks give the same
// curves, live or from a file. Memory is bounded by the sites that the run has samples of, which
// the collector limits, and by the processes that there are at one time.
class SiteTrackBuilder final : public RecordingSink {
 public:
  static constexpr std::size_t kCells = 256;  // of one curve
  // Traced processes that have exited; when there are more, half of them are forgotten.
  static constexpr std::size_t kMostExited = 512;

  Status begin(const RunInfo& info) override;
  Status add(const Tick& tick) override;
  Status process_ended(const ProcessRecord& process) override;
  Status end(double t_s) override;

  const RunSites& sites() const { return run_; }

 private:
  void take_record(const ProcessRecord& process);
  void take_record(const SiteRecord& site);
  void take_sample(const TraceSample& trace);
  void take_memory(const ProcessSample& sample);
  void take_account(const MemoryAccount& account);
  void take_marker(const MarkerRecord& marker);
  void take_loss(const LossRecord& loss);
  std::size_t process_of(const ProcessKey& key, double t_s);
  ProcessLabel label_of(const ProcessKey& key) const;
  void forget_exited();
  void drop(const std::vector<bool>& is_dropped);

  RunSites run_;
  std::unordered_map<ProcessKey, ProcessLabel> labels_;
  std::deque<ProcessKey> exited_;  // those with a label: what the tracer saw may come later
  std::unordered_map<ProcessKey, std::size_t> processes_;   // those that are traced now
  std::size_t traces_ended_ = 0;                            // of run_.processes
  std::unordered_map<std::uint32_t, std::size_t> numbers_;  // of sites
  std::unordered_map<std::uint32_t, SiteSample> current_;
  EpochLength epochs_;
  std::optional<ProcessKey> step_source_;  // pid 0: a log
};

// The value of a curve at a time: that of the last sample until then. nullopt before the first.
std::optional<double> value_at(const Series& series, double t_s);
// How old that value is, in seconds.
std::optional<double> age_at(const Series& series, double t_s);

}  // namespace tidemark::tracker
