// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/records.h"
#include "profiler/collect/shm_growth.h"
#include "profiler/reader/collector.h"

namespace tidemark::collect {

// What has come since the last time.
struct ProfileNews {
  AllocationFacts facts;
  std::vector<std::string> problems;
  std::vector<LossRecord> losses;
};

// Adds the facts of a later pass to those that wait for the same tick. False, and nothing is added:
// a process that has ended in an earlier one has another image by now, and a tick has but one of a
// process.
bool merge_facts(AllocationFacts& waiting, AllocationFacts& later);

// The collector on a thread of its own: reading and naming take longer than a tick may. It is also
// the clock of the tracers. All calls come from one thread.
class ProfileWorker {
 public:
  ProfileWorker(reader::CollectorOptions options, std::int64_t interval_ns);
  ~ProfileWorker();
  ProfileWorker(const ProfileWorker&) = delete;
  ProfileWorker& operator=(const ProfileWorker&) = delete;

  // Before the command starts: what is in /dev/shm by then is not its doing.
  void remember_shm() { shm_.sample({}); }
  void start();
  void set_step(std::int64_t step);
  // A process of the job: segments in /dev/shm of others, where their names tell, do not count.
  void add_process(pid_t pid);
  ProfileNews take();
  // The last pass, with all stacks named that can be named in this time; then the thread ends.
  // `put_to_sleep`: tracers that still run are told to rest.
  void finish(std::int64_t naming_budget_ns, bool put_to_sleep);

  // After finish().
  std::uint64_t files_seen() const { return collector_.files_seen(); }

 private:
  void run();
  void collect(bool is_last);
  void sample_shm();

  const SystemClock clock_;
  const std::int64_t interval_ns_;
  std::unique_ptr<reader::TraceWorld> world_;
  reader::Collector collector_;  // these two: the thread's while it runs
  ShmGrowth shm_;
  std::int64_t naming_budget_ns_ = 0;
  std::thread thread_;

  std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  bool is_stopping_ = false;
  std::optional<std::uint32_t> step_;
  PidSet pids_;                          // of the job
  ProfileNews news_;                     // without the facts that wait
  std::deque<AllocationFacts> waiting_;  // each of one pass, for a tick
};

// The call stacks of a run that somebody else profiles at the same time: looks for the tracer in
// the processes of each tick, and follows its files without touching them.
class LiveSites {
 public:
  // `start_ns`: CLOCK_MONOTONIC at t = 0 of the run.
  LiveSites(std::int64_t start_ns, std::int64_t interval_ns)
      : start_ns_(start_ns), interval_ns_(interval_ns) {}

  // Adds what is known by now.
  void complete(Tick& tick);
  // Whether a profile that it followed has ended since the last call.
  bool take_end() { return std::exchange(has_ended_, false); }

 private:
  void look_for_a_tracer(const Tick& tick);

  const std::int64_t start_ns_;
  const std::int64_t interval_ns_;
  double next_search_s_ = 0.0;
  std::string directory_;
  std::unique_ptr<ProfileWorker> worker_;
  bool has_ended_ = false;
};

}  // namespace tidemark::collect
