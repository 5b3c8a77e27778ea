// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/clock.h"
#include "common/records.h"
#include "common/site_records.h"
#include "profiler/reader/trace_world.h"
#include "profiler/reader/traced_file.h"

namespace tidemark::reader {

// Numbers the modules and frames of a run: equal ones of all processes have one number, so that a
// stack is told by its numbers alone. Not thread-safe.
class FrameNumbers {
 public:
  // `before`: the number before the first one.
  explicit FrameNumbers(std::uint32_t before = 0) : before_(before) {}

  // The numbers of a stack; modules and frames that are new are added to `facts`.
  std::vector<std::uint32_t> number(const std::vector<SourceFrame>& stack, AllocationFacts& facts);

 private:
  std::uint32_t number_of_module(const SourceFrame& frame, AllocationFacts& facts);
  std::uint32_t number_of_frame(const SourceFrame& frame, AllocationFacts& facts);

  const std::uint32_t before_;
  std::unordered_map<std::string, std::uint32_t> modules_;
  std::unordered_map<std::string, std::uint32_t> frames_;
};

struct CollectorOptions {
  std::string directory;       // where the tracers put their files
  std::int64_t start_ns = 0;   // CLOCK_MONOTONIC at t = 0 of the run
  bool remove_files = true;    // after the last pass over a process that has ended
  std::optional<uid_t> owner;  // of the files; nullopt: we
  bool read_only = false;      // somebody else is their clock, gives orders and removes files
  bool attached = false;  // the processes ran before the tracer came: older blocks are not listed
  // Orders to tracers that are found; none: they know what to do.
  std::optional<TraceMode> wake_as;
  std::vector<pid_t> wake_below;  // with wake_as: only these living processes and those below them
  std::uint64_t sample_every_bytes = 0;  // with wake_as

  std::size_t most_files = 1024;    // open at one time; others wait
  std::size_t most_sites = 16'384;  // with samples of their own, in the whole run
  // A site is followed once it holds, or has grown by, this share of what all sites hold.
  double least_share = 1.0 / 2'000.0;
  double least_grown_share = 1.0 / 20'000.0;
  std::size_t most_new_by_size = 200;  // the largest of a pass, and those that grew most
  std::size_t most_new_by_growth = 200;
  std::int64_t naming_budget_ns = kNsPerSecond / 4;  // of one pass
  double scan_share = 0.02;  // of the time, for ages, residency and accounts
  // At least, of a run that is old enough; a young one is scanned more often.
  std::int64_t scan_interval_ns = 5 * kNsPerSecond;
};

// Follows the trace files of all processes of a run: finds new ones, reads their counters, names
// their stacks, reads the rest of those whose process has exited, and is the clock of the tracers.
// Whatever a file holds, it costs at most that file. Memory is bounded by the options and by the
// limits of TraceFile. Not thread-safe; collect() may take long: use a thread of its own.
class Collector {
 public:
  // `world` and `clock` outlive it.
  Collector(CollectorOptions options, TraceWorld& world, const Clock& clock);

  // Several times a second: the step, or second, in which blocks are allocated from now on.
  void set_epoch(std::optional<std::uint32_t> step);

  // One pass over all files; adds what is new to `facts`.
  void collect(AllocationFacts& facts);
  // The last pass: names all stacks that can be named in `naming_budget_ns`, however many.
  void finish(AllocationFacts& facts, std::int64_t naming_budget_ns);
  // Tells all tracers to rest; those that worked already when they were found, to go on as before.
  void put_to_sleep();

  // What went wrong since the last call, here and in the world, as sentences; each file is named
  // once.
  std::vector<std::string> take_problems();
  // The same as counts: "trace_files_unreadable", "trace_looks_damaged".
  std::vector<LossRecord> take_losses();
  std::size_t open_files() const { return files_.size(); }
  std::uint64_t files_seen() const { return files_seen_; }

 private:
  struct Open {
    TracedFile traced;
    TraceMode mode_after = TraceMode::kDormant;
    bool has_successor = false;  // another image of the process has a file by now
    bool has_ended = false;
    bool seemed_replaced = false;  // in the last pass
  };

  void find_new_files();
  void open_file(const std::string& name);
  bool must_wait(const ProcessKey& key);
  Result<TraceMode> wake(TraceFile& file) const;
  void read_files();
  bool is_replaced(Open& open);
  void choose_sites(AllocationFacts& facts);
  void follow(TracedFile& file, const SiteCounts& site, AllocationFacts& facts);
  void name_sites(AllocationFacts& facts, std::int64_t budget_ns);
  void scan(AllocationFacts& facts);
  void measure_residency(TracedFile& file, const LiveScan& scan);
  void add_account(const TracedFile& file, const LiveScan& scan, AllocationFacts& facts);
  void add_summaries(AllocationFacts& facts);
  void drop_ended();
  void note_problem(const std::string& name, const std::string& what);

  CollectorOptions options_;
  TraceWorld& world_;
  const Clock& clock_;
  FrameNumbers numbers_;
  std::vector<std::unique_ptr<Open>> files_;
  std::unordered_set<std::string> done_;  // names of files that are not to be opened (again)
  std::vector<std::string> problems_;
  std::uint64_t unreadable_files_ = 0;
  std::uint64_t damaged_passes_ = 0;
  std::uint64_t files_seen_ = 0;
  bool has_waiting_files_ = false;
  std::uint32_t last_site_ = 0;
  std::uint64_t live_bytes_ = 0;  // of all files, in the last pass
  std::int64_t read_ns_ = 0;
  std::int64_t next_scan_ns_ = 0;
  std::int64_t begun_ns_ = 0;
};

}  // namespace tidemark::reader
