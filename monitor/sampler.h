// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/clock.h"
#include "common/records.h"
#include "common/result.h"
#include "monitor/footprint.h"
#include "monitor/process_tree.h"
#include "monitor/procfs/process_source.h"
#include "monitor/procfs/tracer_files.h"
#include "monitor/sampler_plans.h"
#include "monitor/watched_process.h"

namespace tidemark::monitor {

struct SamplerOptions {
  TreeRoots roots;
  PssMode pss = PssMode::kAuto;
  double pss_share_of_wall_time = 0.01;
  std::size_t statuses_per_tick = 100;  // the others only when they have changed: StatusPlan
  bool redact = true;
  std::string proc_root = "/proc";    // tests give a folder
  std::string shm_root = "/dev/shm";  // likewise
};

// Takes samples of a process tree: who is there, what each one is, what it holds. The machine's
// side of a tick (memory, GPU, markers) is added by the caller. Not thread-safe.
class Sampler {
 public:
  // `source` and `clock` outlive the sampler. Fails with kNotFound when no root exists.
  static Result<std::unique_ptr<Sampler>> start(SamplerOptions options, ProcessSource& source,
                                                const Clock& clock);

  // One sample of the tree, which begins `t_s` after the start of the run. The tick has the time at
  // which its memory was read.
  Tick sample(double t_s);

  // Processes that have ended since the last call, with the time of their end.
  std::vector<ProcessRecord> take_ended();
  // Nobody is left to watch; zombies that wait for their parents do not count.
  bool finished() const;
  const ProcessRecord* find(const ProcessKey& key) const;
  // The process to name in one-line output: the trainer, or else the first rank; nullptr: neither.
  const ProcessRecord* trainer() const;
  std::vector<ProcessKey> members() const;

 private:
  Sampler(SamplerOptions options, ProcessSource& source, const Clock& clock);
  static void add_loss(Tick& tick, LossKind what);

  void discover(Tick& tick);
  bool read_table(Tick& tick);
  void read_children(Tick& tick);
  void start_watching(const ProcessEntry& entry, Tick& tick);
  void stop_watching(const ProcessKey& key, Tick& tick);
  void read_tracer_files();
  void read_status(Tick& tick);
  bool read_memory(WatchedProcess& watched, StatusRead when, Tick& tick);
  void check_identity(WatchedProcess& watched, Tick& tick);
  void check_image(WatchedProcess& watched, Tick& tick);
  void assign_roles();
  void read_shares(Tick& tick);
  void retry_shares();
  bool read_share(WatchedProcess& watched, Tick& tick);
  void discard_if_tree_changed(const std::vector<WatchedProcess*>& read, Tick& tick);
  void describe_new_images(Tick& tick);
  void sum_up(Tick& tick) const;
  std::int64_t when_memory_was_read(std::int64_t begin_ns) const;

  SamplerOptions options_;
  ProcessSource& source_;
  const Clock& clock_;
  ProcessTree tree_;
  DiscoveryPlan plan_;
  StatusPlan status_plan_;
  FootprintLedger ledger_;
  PssBudget budget_;
  TracerFiles tracers_;
  std::int64_t next_tracers_ns_ = 0;
  std::unordered_map<ProcessKey, WatchedProcess> watched_;
  std::vector<WatchedProcess*> order_;  // into `watched_`, by start: the order of output
  std::optional<ProcessHandle> self_;   // to list the children that a launched command orphaned
  std::vector<ProcessKey> new_images_;  // started or changed by exec in this tick
  std::vector<ProcessRecord> ended_;
  bool roles_outdated_ = false;
  std::int64_t next_roles_ns_ = 0;
};

}  // namespace tidemark::monitor
