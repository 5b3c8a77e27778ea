// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "common/clock.h"
#include "common/fd.h"
#include "common/process_key.h"
#include "common/result.h"
#include "guard/headroom.h"
#include "guard/job_group.h"
#include "guard/policy.h"
#include "guard/tree_killer.h"

namespace tidemark::guard {

// What the guard_thread goes by until the next list comes.
struct GuardTargets {
  std::vector<ProcessKey> trainers;  // who gets the signal
  std::vector<ProcessKey> members;   // the whole tree, trainers included
  std::shared_ptr<HeadroomReader> limits;
  TreeUse tree;
  std::optional<LeakRate> leak;  // holds as long as one of the trainers runs
  JobGroup group;                // mostly none
};

// What the guard_thread has done, or would have done in a dry run.
struct GuardReport {
  GuardDecision decision;
  std::int64_t wall_ns = 0;         // CLOCK_REALTIME
  std::array<pid_t, 8> trainers{};  // the first of those that got the signal
  std::uint32_t signalled = 0;
  std::uint32_t not_signalled = 0;  // had ended, or refused
  int signal_errno = 0;             // why, of the last that refused
  TreeKiller::Outcome kill;
  bool group_killed = false;  // the control group that is the job's alone
  std::int64_t took_ns = 0;   // from the look to the last signal
};

struct GuardThreadOptions {
  GuardSettings settings;
  int signal_number = 0;  // what the trainers get
  bool dry_run = false;
  TreeKiller::Options killer;
};

// The thread that acts when memory runs out. It looks the more often the nearer a limit is. From a
// look to the last signal it allocates nothing, takes no lock and writes nothing that somebody has
// to read: it acts first, and reports afterwards. Its lists come from another thread, which never
// holds it up.
class GuardThread {
 public:
  static Result<std::unique_ptr<GuardThread>> create(const GuardThreadOptions& options);
  // Ends the thread.
  ~GuardThread();
  GuardThread(const GuardThread&) = delete;
  GuardThread& operator=(const GuardThread&) = delete;

  // Starts the thread, on a stack that is in memory. Empty notes: everything that helps was
  // granted (a priority above others).
  Result<std::vector<std::string>> start();
  void stop();

  void post(std::unique_ptr<GuardTargets> list);
  // Readable when take_report() has news.
  int news_fd() const { return news_.get(); }
  std::optional<GuardReport> take_report();

  // What the last look saw, for people.
  struct LastCheck {
    std::int64_t at_ns = 0;  // CLOCK_MONOTONIC; 0: no look yet
    GuardStage stage = GuardStage::kWatching;
    std::optional<std::int64_t> free_bytes;
  };
  LastCheck last_check() const;
  std::uint64_t looks() const { return looks_.load(std::memory_order_relaxed); }

  // One look, as the thread does it: how long to wait for the next. Only without the thread.
  std::int64_t look();

 private:
  static constexpr std::size_t kMostReports = 64;
  static constexpr std::size_t kStackBytes = std::size_t{256} << 10U;

  GuardThread(const GuardThreadOptions& options, TreeKiller killer);
  static void* run(void* self);
  void take_list();
  bool any_runs(std::span<const ProcessKey> keys) const;
  void act(const GuardDecision& decision, GuardReport& report);
  void send_signal(GuardReport& report);
  bool was_signalled(const ProcessKey& key) const;
  void report(const GuardReport& made);
  std::optional<double> read_pressure(std::int64_t now_ns);
  void show(std::int64_t now_ns, const std::optional<Headroom>& headroom);

  const GuardThreadOptions options_;
  const SystemClock clock_;
  TreeKiller killer_;
  GuardPolicy policy_;
  Fd proc_;
  Fd news_;
  Fd wake_;

  std::mutex mutex_;  // of the two below
  std::unique_ptr<GuardTargets> incoming_;
  std::unique_ptr<GuardTargets> retired_;  // its memory is given back by the other thread

  // The thread's own.
  std::unique_ptr<GuardTargets> list_;
  std::array<ProcessKey, 64> signalled_{};
  std::size_t signalled_count_ = 0;
  GuardDecision last_stop_;
  bool tree_alive_ = true;
  bool told_of_kill_ = false;
  std::optional<double> pressure_;
  std::int64_t next_pressure_ns_ = 0;

  // A ring with one writer, the thread, and one reader.
  std::array<GuardReport, kMostReports> reports_;
  std::atomic<std::uint32_t> reports_written_{0};
  std::atomic<std::uint32_t> reports_read_{0};

  std::atomic<std::int64_t> seen_at_ns_{0};
  std::atomic<std::int64_t> seen_free_bytes_{INT64_MIN};
  std::atomic<GuardStage> seen_stage_{GuardStage::kWatching};
  std::atomic<std::uint64_t> looks_{0};

  std::atomic<bool> told_to_stop_{false};
  void* stack_ = nullptr;
  std::optional<pthread_t> thread_;
};

}  // namespace tidemark::guard
