// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/records.h"
#include "common/result.h"
#include "common/run_summary.h"
#include "common/step_count.h"
#include "common/units.h"
#include "monitor/gpu/gpu_watch.h"
#include "monitor/markers/markers.h"
#include "monitor/procfs/process_source.h"
#include "monitor/procfs/shm_watch.h"
#include "monitor/procfs/system_sample.h"
#include "monitor/sampler.h"

namespace tidemark::monitor {

// Says when memory grew by more than `rate.bytes` within `rate.per` seconds or steps: an early
// word to somebody who watches, not a verdict. After a warning the window starts anew, so that a
// steady climb warns once per window. Where more than a window lies between two samples, as many
// times as much may have come. Memory is bounded however long the window is. Pure.
class GrowthWarning {
 public:
  explicit GrowthWarning(Rate rate);

  struct Warning {
    std::uint64_t growth_bytes = 0;
    double over = 0.0;  // seconds or steps in which it grew
  };
  // `at` is in the rate's unit: seconds, or steps.
  std::optional<Warning> add(double at, std::uint64_t bytes);

  const Rate& rate() const { return rate_; }

 private:
  struct Low {  // the lowest point of a stretch of the window
    double from;
    double at;
    std::uint64_t bytes;
  };

  Rate rate_;
  std::deque<Low> lows_;
};

// The default: 5 % of the limit per minute.
Rate default_growth_rate(std::uint64_t limit_bytes);

struct SessionOptions {
  SamplerOptions sampler;
  std::int64_t start_ns = 0;  // CLOCK_MONOTONIC at t = 0
  std::int64_t interval_ns = kNsPerSecond;
  bool warn = true;
  std::optional<Rate> warn_growth;  // nullopt: 5 % of the limit per minute
  std::string machine_root;  // "" but for tests, which give a folder with proc/ and sys/fs/cgroup/
};

// One run of the monitor: the tree's samples together with the machine's side, GPUs, markers and
// warnings. The caller decides when to sample and what to do with a tick. Not thread-safe.
class Session {
 public:
  // `source` and `clock` outlive the session.
  static Result<std::unique_ptr<Session>> start(SessionOptions options, ProcessSource& source,
                                                const Clock& clock);

  // Removes the marker files of processes that have exited.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // One sample, which was due at `due_ns`. `from_log`: markers that were read from the job's
  // output, with t_s in the time of this run. `losses`: what the caller has lost; they get the
  // tick's time.
  Tick sample(std::int64_t due_ns, std::vector<MarkerRecord> from_log,
              std::vector<LossRecord> losses = {});
  // Between two samples, about every kFindMarkerFilesNs: opens the marker files of processes that
  // may have exited by the next one.
  void find_marker_files() { markers_.find_rings(clock_.monotonic_ns()); }
  static constexpr std::int64_t kFindMarkerFilesNs = kNsPerSecond / 4;
  // What the caller has lost since the last sample; only the summary can still tell.
  void add_losses(const std::vector<LossRecord>& losses);

  const Sampler& sampler() const { return *sampler_; }
  std::vector<ProcessRecord> take_ended() { return sampler_->take_ended(); }
  const RunSummary& summary() const { return summary_; }
  const EffectiveLimit& limit() const { return system_.limit(); }
  // What people should know before the first tick: a limit or a GPU that cannot be seen.
  const std::vector<std::string>& notes() const { return notes_; }
  // What has come up since the last call that people should know: why a GPU does not answer.
  std::vector<std::string> take_news() { return std::exchange(news_, {}); }
  // Why there are no figures of a GPU, where that is no fault; "" otherwise.
  const std::string& no_gpu() const { return no_gpu_; }
  const std::optional<ShmReport>& shm_report() const { return shm_.report(); }
  std::optional<std::uint64_t> shm_used_bytes() const { return shm_.used_bytes(); }
  // The job's files in /dev/shm, by inode, as far as they are known.
  const std::unordered_set<ino_t>& job_segments() const { return shm_.of_job(); }
  // Host, kernel, limits, interval; the caller adds version and command.
  RunInfo describe() const;

 private:
  Session(SessionOptions options, const Clock& clock, std::unique_ptr<Sampler> sampler,
          std::unique_ptr<GpuWatch> gpu);

  void take_first_sample();
  void wait_for_the_gpu();
  void refresh_limit();
  bool comes_from_the_step_source(const ProcessKey& key);
  void add_system(Tick& tick);
  void add_gpus(Tick& tick);
  void add_lost_gpus(Tick& tick);
  void tell_gpu_failure(const std::string& failure);
  void add_markers(Tick& tick, std::vector<MarkerRecord> from_log);
  void add_gap(Tick& tick);
  void add_warning(Tick& tick);

  SessionOptions options_;
  const Clock& clock_;
  std::int64_t start_wall_ns_;
  std::unique_ptr<Sampler> sampler_;
  SystemReader system_;
  ShmWatch shm_;
  std::unique_ptr<GpuWatch> gpu_;      // nullptr: this machine has none that we can ask
  std::set<std::uint32_t> lost_gpus_;  // that were told of
  MarkerReader markers_;
  std::optional<GrowthWarning> warning_;
  RunSummary summary_;
  std::optional<double> last_sample_s_;
  double next_limit_s_ = 0.0;
  ProcessKey limit_of_;        // the trainer when the limit was last read
  std::optional<Tick> first_;  // taken at the start, given out by the first sample()
  std::vector<std::string> notes_;
  std::vector<std::string> news_;
  std::set<std::string> gpu_failures_;  // that were told of
  std::string no_gpu_;
  std::optional<std::uint64_t> physical_bytes_;
  std::uint64_t unreadable_markers_ = 0;
  StepCount steps_;
  std::optional<ProcessKey> step_source_;  // pid 0: a log
  std::optional<std::int64_t> step_;
  std::optional<std::int64_t> epoch_;
};

}  // namespace tidemark::monitor
