// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/process_key.h"
#include "common/records.h"
#include "tracker/causes/interpreters.h"
#include "tracker/curve/curve_window.h"
#include "tracker/curve/series.h"
#include "tracker/ledgers/ledgers.h"

namespace tidemark::tracker {

// What a curve counts.
enum class Metric {
  kFootprint,
  kRss,
  kPss,
  kUss,
  kRssFile,
  kRssShmem,
  kSwap,
  kGpu,
  kGpuDevice,       // of the tree: all that the devices hold, whoever uses it
  kTorchAllocated,  // what torch's caching allocator has in use on GPUs, by its own account
  kTorchReserved,   // and what it holds
};
inline constexpr std::size_t kMetricCount = 11;

enum class TrackKind {
  kProcess,
  kRole,
  kTree,
  kShm,  // named segments in /dev/shm that no living process holds
};

// The curves of one process, one role or the whole tree. A metric that was never seen is empty.
struct Track {
  TrackKind kind = TrackKind::kTree;
  ProcessKey key;  // of kProcess
  Role role = Role::kOther;
  std::optional<int> rank;
  std::string comm;     // raw bytes
  std::string program;  // what people call it, raw bytes; empty: as `comm`
  double started_s = 0.0;
  std::optional<double> exited_s;
  std::optional<double> age_at_start_s;  // of a process, at its first sample
  std::uint32_t most_processes = 1;      // of a role or tree, at one time
  std::array<Series, kMetricCount> curves;
  // Of a process with a tracer in it: what its allocator kept of freed memory, at first and at
  // last.
  std::optional<double> first_slack_bytes;
  std::optional<double> last_slack_bytes;

  void take_slack(double bytes) {
    first_slack_bytes = first_slack_bytes.value_or(bytes);
    last_slack_bytes = bytes;
  }

  Series& of(Metric metric) { return curves[static_cast<std::size_t>(metric)]; }
  const Series& of(Metric metric) const { return curves[static_cast<std::size_t>(metric)]; }
};

// A fact of the run that explains a change of memory.
struct RunEvent {
  double t_s = 0.0;
  enum class Kind { kSpawn, kExit, kExec, kOomKill, kPhaseBegin, kPhaseEnd } kind = Kind::kSpawn;
  Role role = Role::kOther;
  std::string name;  // of a phase
};

// A whole run, as the tracker sees it: the tree first, then roles, then processes, then shm.
struct RunTracks {
  std::vector<Track> tracks;
  std::vector<RunEvent> events;  // in the order of time; at most 10,000, then only counted
  std::uint64_t events_dropped = 0;
  std::optional<double> limit_bytes;
  std::string limit_source;
  // Of the GPU that the run uses, where that is one only.
  std::optional<double> gpu_limit_bytes;
  std::string gpu_limit_source;
  std::optional<double> steps_at_start;  // that the job had done, as it numbers them
  std::optional<double> epoch_steps;
  std::optional<double> epoch_seconds;
  std::vector<std::pair<std::string, std::uint64_t>> losses;
  Interpreters interpreters;
  Ledgers ledgers;
};

std::string_view metric_name(Metric metric);
// Memory of a GPU, by its driver's account.
constexpr bool is_gpu(Metric metric) {
  return metric == Metric::kGpu || metric == Metric::kGpuDevice;
}
std::string_view track_kind_name(TrackKind kind);

// The curve of a track that is judged, and what it counts.
struct JudgedCurve {
  Metric metric = Metric::kFootprint;
  Series series;
};

// `asked`: that metric and no other; but where the driver does not tell what each process has of a
// GPU, all that its devices hold. Otherwise footprint where it or its parts are known, else rss
// for one process and pss (then rss) for roles and trees. nullopt: there is no such curve.
std::optional<JudgedCurve> choose_curve(const Track& track, std::optional<Metric> asked);

// How large a process is, by whichever curve there is; nullptr: none.
const Series* size_curve(const Track& track);

bool is_member(const Track& process, const Track& group);

// The window from when all processes that start at its beginning are there: a start adds all that
// the process sees, and is no growth.
Window after_first_starts(const RunTracks& run, const Track& group, Window window);

// Where the growth of a role or tree must end when it is nothing but pages that were shared and
// become private by being written to: the sum of what its processes see. nullopt when it is
// something else, or when that end was passed.
std::optional<double> unsharing_bound(const RunTracks& run, const Track& group,
                                      const JudgedCurve& curve, const Window& judged);

// True when a process grew by touching a segment that others had filled: its shared memory rose,
// and the tree, which counts the segment once, did not.
bool grew_by_touching_shared(const Track& process, const Series& tree, const Window& window);

}  // namespace tidemark::tracker
