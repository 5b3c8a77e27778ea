// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/intervention_records.h"
#include "common/ledger_records.h"
#include "common/owner_records.h"
#include "common/process_key.h"
#include "common/site_records.h"

// What a run consists of: the values that the monitor produces, the recording keeps and the
// tracker reads. All times are seconds since the start of the run. What the kernel does not
// report is nullopt, never 0.
namespace tidemark {

// What a process is in a training job. The names are written to run files and JSON: they never
// change their meaning, and new ones are added at the end.
enum class Role {
  kOther,
  kTrainer,
  kRank,
  kCompileWorker,
  kDataloaderWorker,
  kWrapper,
  kLauncher,
  kResourceTracker,
  kShmManager,
  kForkserver,
  kRay,
  kInference,  // vLLM engine and workers
};
inline constexpr int kRoleCount = 12;

// "compile_worker", "other", ...
std::string_view role_name(Role role);
// Also understands "main" for the trainer, as other tools' files write it.
std::optional<Role> role_from_name(std::string_view name);

// The run as a whole; written once at the start, except `end_*`.
struct RunInfo {
  std::string tool_version;
  std::string host;
  std::string kernel;
  std::string command;  // redacted; empty when attached by pid
  std::string format;   // "tidemark", "csv", "mprof", "psrecord", "json-series"
  std::optional<std::int64_t> start_wall_ns;  // CLOCK_REALTIME at t = 0
  std::optional<std::uint64_t> physical_bytes;
  std::optional<std::uint64_t> limit_bytes;  // the effective limit
  std::string limit_source;                  // "cgroup v2 /user.slice", "physical memory", ...
  std::optional<double> interval_s;
  bool time_is_steps = false;  // imported series that know steps only: t_s counts steps
  bool ended_cleanly = false;
};

struct ProcessRecord {
  ProcessKey key;
  pid_t ppid = 0;
  Role role = Role::kOther;
  std::optional<int> rank;  // of Role::kRank
  std::string comm;         // raw bytes
  std::string argv;         // redacted, joined by blanks, raw bytes
  double started_s = 0.0;   // first seen; before the run: 0
  std::optional<double> exited_s;
  std::optional<int> exit_status;  // wait status, known for our own children only
  // How long it had run its program when it was first seen: 0 after an exec that was seen.
  std::optional<double> age_s;

  // What people call it, raw bytes: "train.py" of `python3 -u src/train.py`,
  // "torch.distributed.run" of `python3 -m torch.distributed.run`, the whole name where the kernel
  // cut it off; else `comm`.
  std::string program() const;
};

// One process at one instant.
struct ProcessSample {
  ProcessKey key;
  std::optional<std::uint64_t> rss_bytes;
  std::optional<std::uint64_t> rss_anon_bytes;
  std::optional<std::uint64_t> rss_file_bytes;
  std::optional<std::uint64_t> rss_shmem_bytes;
  std::optional<std::uint64_t> swap_bytes;
  std::optional<std::uint64_t> hwm_bytes;
  std::optional<std::uint64_t> pss_bytes;            // these three: as of `pss_age_s` ago
  std::optional<std::uint64_t> pss_footprint_bytes;  // Pss_Anon + Pss_Shmem + SwapPss
  std::optional<std::uint64_t> uss_bytes;
  std::optional<double> pss_age_s;
  std::optional<std::uint32_t> threads;
  char state = '?';  // as in /proc/PID/stat; 'Z' is a zombie

  // The number that verdicts use: anonymous + shared memory + swap of this process.
  std::optional<std::uint64_t> footprint_bytes() const {
    if (!rss_anon_bytes || !rss_shmem_bytes) {
      return std::nullopt;
    }
    return *rss_anon_bytes + *rss_shmem_bytes + swap_bytes.value_or(0);
  }
};

// Sums of a role or of the whole tree. Shared pages count once in `footprint_bytes` and
// `pss_bytes`, once per process in `rss_bytes`.
struct GroupSample {
  std::uint32_t processes = 0;
  std::uint64_t rss_bytes = 0;
  std::uint64_t swap_bytes = 0;
  std::optional<std::uint64_t> footprint_bytes;  // nullopt: imported without its parts
  bool footprint_held = false;  // a process started or ended, Pss not read yet: partly an old value
  std::optional<std::uint64_t> pss_bytes;  // nullopt until every member has been read once
  std::uint32_t unreadable = 0;            // members whose memory could not be read
};

struct RoleSample {
  Role role = Role::kOther;
  GroupSample sum;
};

struct SystemSample {
  std::optional<std::uint64_t> total_bytes;
  std::optional<std::uint64_t> available_bytes;
  std::optional<std::uint64_t> swap_total_bytes;
  std::optional<std::uint64_t> swap_free_bytes;
  std::optional<std::uint64_t> shmem_bytes;
  std::optional<double> psi_some_avg10;  // percent of time that some task waited for memory
  std::optional<double> psi_full_avg10;
  std::optional<std::uint64_t> cgroup_used_bytes;  // anon + shmem + swap of the limiting cgroup
  std::optional<std::uint64_t> cgroup_limit_bytes;
  std::optional<double> cgroup_psi_some_avg10;  // the same two, of the tasks in that cgroup
  std::optional<double> cgroup_psi_full_avg10;
  std::optional<std::uint64_t> dev_shm_bytes;         // all of /dev/shm
  std::optional<std::uint64_t> dev_shm_unheld_bytes;  // named segments that no process holds
  std::optional<std::uint32_t> dev_shm_segments;
  // Of the limiting cgroup: all that the kernel charges to it, and the page cache in that.
  std::optional<std::uint64_t> cgroup_charged_bytes = std::nullopt;
  std::optional<std::uint64_t> cgroup_cache_bytes = std::nullopt;
};

struct GpuProcessUse {
  pid_t pid = 0;
  std::optional<std::uint64_t> used_bytes;
};

struct GpuSample {
  std::uint32_t index = 0;  // of a MIG instance: see gpu_label()
  std::string name;
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> total_bytes;
  std::vector<GpuProcessUse> processes;         // of the watched tree
  std::optional<std::uint64_t> reserved_bytes;  // by the driver, beside `used_bytes`
  std::optional<std::uint32_t> busy_percent;    // share of recent time in which it was in use
  double age_s = 0.0;                           // of all figures: the driver has not answered since
  bool is_lost = false;                         // fell off the bus, or needs a reset
};

// MIG instance i of GPU g has this index.
constexpr std::uint32_t kMigIndexBase = 100;
constexpr std::uint32_t mig_index(std::uint32_t gpu, std::uint32_t instance) {
  return kMigIndexBase * (gpu + 1) + instance;
}
// "gpu0"; "gpu0.3" for its MIG instance 3.
std::string gpu_label(std::uint32_t index);

enum class MarkerKind { kStep, kEpoch, kPhaseBegin, kPhaseEnd, kGauge };

struct MarkerRecord {
  double t_s = 0.0;
  ProcessKey key;  // pid 0: read from a log, not from a process
  MarkerKind kind = MarkerKind::kStep;
  std::int64_t value = 0;  // step or epoch number; of a gauge what it shows
  std::string name;        // of a phase or gauge
};

// Gauges that mean something to us: what torch's caching allocator has in use and holds, over all
// GPUs of the process.
inline constexpr std::string_view kTorchAllocatedGauge = "torch_gpu_allocated_bytes";
inline constexpr std::string_view kTorchReservedGauge = "torch_gpu_reserved_bytes";

enum class EventKind {
  kSpawn,
  kExit,
  kExec,
  kOomKill,
  kGap,         // no sample for longer than three intervals: suspended, stopped or starved
  kWarnGrowth,  // --warn-growth
  kReparent,    // lost its parent, still watched
  kMark,        // a mark that the user set
  kGpuLost,     // the driver has lost a device
  kGuard,       // `tidemark guard` warned, stopped or killed
  kRefused,     // `tidemark diagnose` could not look at something: "owners: why"
};

struct EventRecord {
  double t_s = 0.0;
  EventKind kind = EventKind::kSpawn;
  ProcessKey key;  // pid 0: of the run as a whole
  std::string detail;
  std::uint64_t count = 1;  // how many of these in one: kOomKill
};

// What may be missing from a recording; docs/output.md explains each.
enum class LossKind {
  kPssDenied,
  kPssUnreadable,
  kPssTooLarge,
  kSplitUnknown,
  kStatusUnreadable,
  kProcessTableUnreadable,
  kMarkersLost,
  kMarkerFilesUnreadable,
  kStepsLost,
  kStepLinesLost,
  kLinesDropped,
  kTicksDropped,
  kFactsDropped,
  kBadLines,
  kGpuUnreadable,
  kGpuQueriesFailed,
  kGpuLate,
  kGpuProcessesUnmapped,
  kProcessesUntracked,
  kSamplesDropped,
  kEventsDropped,
  kTraceFilesUnreadable,
  kTraceLooksDamaged,
};

// "pss_denied", "bad_lines", ...: written to run files and JSON, so they never change.
std::string_view loss_name(LossKind kind);
std::span<const std::string_view> loss_names();

// A kind of loss, or the name that another version of the tool gave it in a file.
class LossName {
 public:
  LossName() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): {t_s, LossKind::kBadLines, 3}
  LossName(LossKind kind) : kind_(kind) {}
  explicit LossName(std::string_view name);

  std::string_view text() const { return kind_ ? loss_name(*kind_) : other_; }
  friend bool operator==(const LossName&, const LossName&) = default;

 private:
  std::optional<LossKind> kind_;
  std::string other_;  // without a kind
};

// Something that was not seen, or seen and not kept.
struct LossRecord {
  double t_s = 0.0;
  LossName what;
  std::uint64_t count = 0;
};

// One sample of the whole tree.
struct Tick {
  double t_s = 0.0;
  double late_s = 0.0;                // how long after its due time the sample was taken
  std::optional<std::int64_t> step;   // last step marker seen so far
  std::optional<std::int64_t> epoch;  // last epoch marker seen so far
  GroupSample tree;
  std::vector<RoleSample> roles;             // only roles that have members
  std::vector<ProcessRecord> new_processes;  // first seen, or changed by exec, in this tick
  std::vector<ProcessSample> processes;
  std::optional<SystemSample> system;
  std::vector<GpuSample> gpus;
  std::vector<MarkerRecord> markers;
  std::vector<EventRecord> events;
  std::vector<LossRecord> losses;
  AllocationFacts allocations;  // empty without the allocation tracer
  HeapFacts heap;               // empty where nobody looked at the heap
  std::vector<InterventionRecord> interventions;
  std::vector<MemoryLedger> ledgers;
};

// "spawn", "oom_kill", ...; "step", "phase_begin", ...
std::string_view event_name(EventKind kind);
std::optional<EventKind> event_from_name(std::string_view name);
std::string_view marker_name(MarkerKind kind);
std::optional<MarkerKind> marker_from_name(std::string_view name);

// Imported runs may have no RSS, and a sum of nothing is 0: nobody who holds memory has none of it
// in RAM.
inline std::optional<std::uint64_t> known_rss_bytes(const GroupSample& sum) {
  const bool is_missing =
      sum.rss_bytes == 0 && sum.processes > 0 && sum.footprint_bytes.value_or(1) > 0;
  return is_missing ? std::nullopt : std::optional(sum.rss_bytes);
}

// Swap of `sum`, a group of `tick`: likewise unknown where no process says how much it has.
inline std::optional<std::uint64_t> known_swap_bytes(const Tick& tick, const GroupSample& sum) {
  const bool is_told = std::any_of(tick.processes.begin(), tick.processes.end(),
                                   [](const ProcessSample& s) { return s.swap_bytes.has_value(); });
  const bool is_missing = sum.swap_bytes == 0 && !is_told && !tick.processes.empty() &&
                          sum.footprint_bytes.value_or(1) > 0;
  return is_missing ? std::nullopt : std::optional(sum.swap_bytes);
}

}  // namespace tidemark
