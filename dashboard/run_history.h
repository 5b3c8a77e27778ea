// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/records.h"
#include "tracker/curve/series.h"

namespace tidemark::dashboard {

// Memory over a stretch of time.
struct HistoryPoint {
  double t_s = 0.0;
  double min_bytes = 0.0;
  double max_bytes = 0.0;
  std::optional<std::int64_t> step = std::nullopt;  // the last one before it
};

// The last minute of a number, coarsely: how fast it changes now. In a run that has no time its
// steps take the place of the seconds.
class RecentRate {
 public:
  void add(double t_s, double bytes);
  // nullopt before there are a few seconds to compare.
  std::optional<double> bytes_per_s() const;

 private:
  std::deque<std::pair<double, double>> points_;
};

// One process that is alive, and what became of it so far.
struct ProcessHistory {
  ProcessRecord record;
  ProcessSample sample;
  std::optional<std::uint64_t> first_bytes;  // its footprint when it was first seen
  RecentRate rate;
  tracker::Series footprint{kCells};

  static constexpr std::size_t kCells = 128;
};

struct HistoryMark {
  enum class Kind { kStarted, kExited, kWarning, kOomKill, kGap, kEpoch, kUser, kGpuLost };
  double t_s = 0.0;
  Kind kind = Kind::kStarted;
  std::string text;  // raw bytes
};

struct HistoryPhase {
  double from_s = 0.0;
  std::optional<double> to_s;  // nullopt: goes on
  std::string name;            // raw bytes
  std::size_t kind = 0;        // its name as a number, in the order in which names have come
};

// Everything that the screen shows of a run, in a bounded amount of memory however long it is: old
// samples are merged, old marks dropped. Not thread-safe.
class RunHistory {
 public:
  void begin(const RunInfo& info) { info_ = info; }
  // From now on.
  void set_limit(std::optional<std::uint64_t> bytes, std::string source) {
    info_.limit_bytes = bytes;
    info_.limit_source = std::move(source);
  }
  // `trainer`: the process that the run is about; pid 0 for none.
  void add(const Tick& tick, const ProcessKey& trainer);

  const RunInfo& info() const { return info_; }
  bool is_empty() const { return ticks_ == 0; }
  std::uint64_t ticks() const { return ticks_; }
  double first_s() const { return first_s_; }  // of the first sample
  double now_s() const { return now_s_; }
  // "00:03:20", or "step 12" of a run that has no time.
  std::string time_format(double t_s) const;
  std::optional<std::int64_t> step() const { return step_; }
  std::optional<std::int64_t> epoch() const { return epoch_; }
  // Nobody is left, but zombies: the next four stay as they were with the last who was.
  bool all_have_exited() const { return all_have_exited_; }
  const ProcessKey& trainer() const { return trainer_; }
  const GroupSample& tree() const { return tree_; }
  const std::vector<RoleSample>& roles() const { return roles_; }
  const std::unordered_map<ProcessKey, ProcessHistory>& processes() const { return processes_; }
  const std::vector<GpuSample>& gpus() const { return gpus_; }
  // As it was when it was last read; nullopt: never.
  const std::optional<SystemSample>& system() const { return system_; }
  std::optional<std::uint64_t> first_tree_bytes() const { return first_tree_bytes_; }
  std::optional<std::uint64_t> first_role_bytes(Role role) const;
  const RecentRate* role_rate(Role role) const;
  const std::deque<HistoryMark>& marks() const { return marks_; }
  const std::deque<HistoryPhase>& phases() const { return phases_; }
  const std::vector<LossRecord>& losses() const { return losses_; }

  // Footprint of the tree in the order of time: what is recent as it was sampled, what is older
  // merged.
  std::vector<HistoryPoint> timeline(double from_s, double to_s) const;
  // Since when every sample is there.
  double recent_from_s() const { return recent_.empty() ? 0.0 : recent_.front().t_s; }

 private:
  static constexpr std::size_t kRecentPoints = 8192;
  static constexpr std::size_t kWholeCells = 4096;
  static constexpr std::size_t kMostMarks = 2048;

  struct RoleCourse {
    std::uint64_t first_bytes = 0;
    RecentRate rate;
  };

  void add_curve(const Tick& tick);
  void add_tree(const Tick& tick);
  void add_processes(const Tick& tick);
  void add_events(const Tick& tick);
  void forget_exited_processes(const Tick& tick);
  void add_markers(const Tick& tick);
  void add_mark(HistoryMark mark);
  double step_place() const;
  std::size_t phase_kind(const std::string& name);

  RunInfo info_;
  std::uint64_t ticks_ = 0;
  double first_s_ = 0.0;
  double now_s_ = 0.0;
  std::optional<std::int64_t> step_;
  std::optional<std::int64_t> epoch_;
  bool all_have_exited_ = false;
  ProcessKey trainer_;
  GroupSample tree_;
  std::vector<RoleSample> roles_;
  std::vector<GpuSample> gpus_;
  std::optional<SystemSample> system_;
  std::optional<std::uint64_t> first_tree_bytes_;
  std::unordered_map<int, RoleCourse> role_courses_;
  std::unordered_map<ProcessKey, ProcessHistory> processes_;
  std::unordered_map<ProcessKey, ProcessRecord> introduced_;  // not sampled yet
  std::deque<HistoryPoint> recent_;
  tracker::Series whole_{kWholeCells};
  std::deque<HistoryMark> marks_;
  std::deque<HistoryPhase> phases_;
  std::vector<std::string> phase_names_;  // outlive the phases that are dropped
  std::vector<LossRecord> losses_;
};

// What the tree and its members are measured by: footprint, else rss.
std::uint64_t bytes_of(const GroupSample& sum);
std::optional<std::uint64_t> bytes_of(const ProcessSample& sample);

// "trainer 110"; imported processes have no pid.
std::string name_of(Role role, pid_t pid);
// Raw bytes; empty where it is unknown.
std::string command_of(const ProcessRecord& record);

}  // namespace tidemark::dashboard
