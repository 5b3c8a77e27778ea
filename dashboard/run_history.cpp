// SPDX-License-Identifier: Apache-2.0
#include "dashboard/run_history.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "common/units.h"

namespace tidemark::dashboard {
namespace {

constexpr double kRateWindowS = 60.0;
constexpr double kRateStepS = 2.0;
constexpr double kShortestS = 3.0;
constexpr std::size_t kTogether = 3;  // more at once are counted by role
constexpr std::size_t kMostPhaseNames = 64;

// The processes that started, or exited, in one tick: by name, or counted by role.
class RoleCounts {
 public:
  void add(const ProcessKey& key, const ProcessRecord* record) {
    ++count_;
    ++by_role_[record == nullptr ? Role::kOther : record->role];
    if (count_ <= kTogether) {
      names_ += count_ == 1 ? "" : ", ";
      names_ += record == nullptr ? fmt::format("pid {}", key.pid) : name_of(record->role, key.pid);
    }
  }
  bool is_empty() const { return count_ == 0; }
  // "trainer 110, wrapper 100", or "20 compile_worker, 1 dataloader_worker": the most first.
  std::string words() const {
    if (count_ <= kTogether) {
      return names_;
    }
    std::vector<std::pair<Role, std::size_t>> roles(by_role_.begin(), by_role_.end());
    std::stable_sort(roles.begin(), roles.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string text;
    for (const auto& [role, count] : roles) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, role_name(role));
    }
    return text;
  }

 private:
  std::size_t count_ = 0;
  std::map<Role, std::size_t> by_role_;
  std::string names_;
};

bool nobody_is_alive(const Tick& tick) {
  return std::all_of(tick.processes.begin(), tick.processes.end(),
                     [](const ProcessSample& sample) { return sample.state == 'Z'; });
}

std::optional<std::int64_t> step_of(const tracker::Cell& cell) {
  return std::isnan(cell.step) ? std::nullopt : std::optional(std::llround(cell.step));
}

}  // namespace

std::uint64_t bytes_of(const GroupSample& sum) {
  return sum.footprint_bytes.value_or(sum.rss_bytes);
}

std::optional<std::uint64_t> bytes_of(const ProcessSample& sample) {
  const auto footprint = sample.footprint_bytes();
  return footprint ? footprint : sample.rss_bytes;
}

std::string name_of(Role role, pid_t pid) {
  return pid > 0 ? fmt::format("{} {}", role_name(role), pid) : std::string(role_name(role));
}

std::string command_of(const ProcessRecord& record) {
  return record.argv.empty() && !record.comm.empty() ? "[" + record.comm + "]" : record.argv;
}

std::string RunHistory::time_format(double t_s) const {
  return TimeFormat(TimeFormat::Seconds::kWhole, info_.time_is_steps).at(t_s);
}

void RecentRate::add(double t_s, double bytes) {
  if (points_.size() >= 2 && t_s - points_[points_.size() - 2].first < kRateStepS) {
    points_.back() = {t_s, bytes};
  } else {
    points_.emplace_back(t_s, bytes);
  }
  while (points_.size() > 2 && t_s - points_[1].first >= kRateWindowS) {
    points_.pop_front();
  }
}

std::optional<double> RecentRate::bytes_per_s() const {
  if (points_.size() < 2 || points_.back().first - points_.front().first < kShortestS) {
    return std::nullopt;
  }
  return (points_.back().second - points_.front().second) /
         (points_.back().first - points_.front().first);
}

void RunHistory::add(const Tick& tick, const ProcessKey& trainer) {
  first_s_ = ticks_++ == 0 ? tick.t_s : first_s_;
  now_s_ = tick.t_s;
  step_ = tick.step ? tick.step : step_;
  epoch_ = tick.epoch ? tick.epoch : epoch_;
  gpus_ = tick.gpus;
  system_ = tick.system ? tick.system : system_;
  add_curve(tick);
  all_have_exited_ = !processes_.empty() && nobody_is_alive(tick);
  if (!all_have_exited_) {
    trainer_ = trainer;
    add_tree(tick);
    add_processes(tick);
  }
  add_events(tick);
  if (!all_have_exited_) {
    forget_exited_processes(tick);
  }
  add_markers(tick);
  for (const LossRecord& loss : tick.losses) {
    const auto it = std::find_if(losses_.begin(), losses_.end(),
                                 [&](const LossRecord& known) { return known.what == loss.what; });
    if (it == losses_.end()) {
      losses_.push_back(loss);
    } else {
      it->count += loss.count;
    }
  }
}

double RunHistory::step_place() const {
  return info_.time_is_steps ? now_s_ : step_ ? static_cast<double>(*step_) : tracker::kUnknown;
}

void RunHistory::add_curve(const Tick& tick) {
  const auto bytes = static_cast<double>(bytes_of(tick.tree));
  whole_.add(now_s_, step_place(), bytes);
  recent_.push_back({now_s_, bytes, bytes, step_});
  if (recent_.size() > kRecentPoints) {
    recent_.pop_front();
  }
}

void RunHistory::add_tree(const Tick& tick) {
  tree_ = tick.tree;
  roles_ = tick.roles;
  first_tree_bytes_ = first_tree_bytes_.value_or(bytes_of(tree_));
  for (const RoleSample& role : roles_) {
    const auto [it, is_new] = role_courses_.try_emplace(static_cast<int>(role.role));
    if (is_new) {
      it->second.first_bytes = bytes_of(role.sum);
    }
    it->second.rate.add(now_s_, static_cast<double>(bytes_of(role.sum)));
  }
}

void RunHistory::add_processes(const Tick& tick) {
  for (const ProcessRecord& record : tick.new_processes) {
    const auto known = processes_.find(record.key);
    (known != processes_.end() ? known->second.record : introduced_[record.key]) = record;
  }
  for (const ProcessSample& sample : tick.processes) {
    const auto [it, is_new] = processes_.try_emplace(sample.key);
    ProcessHistory& process = it->second;
    if (is_new) {
      process.record.key = sample.key;
      if (auto node = introduced_.extract(sample.key)) {
        process.record = std::move(node.mapped());
      }
    }
    process.sample = sample;
    if (const auto bytes = bytes_of(sample)) {
      process.first_bytes = process.first_bytes.value_or(*bytes);
      process.rate.add(now_s_, static_cast<double>(*bytes));
      process.footprint.add(info_.time_is_steps ? tracker::kUnknown : now_s_, step_place(),
                            static_cast<double>(*bytes));
    }
  }
  // A process that was announced and never sampled has exited.
  std::erase_if(introduced_, [&](const auto& entry) { return entry.second.started_s < now_s_; });
}

void RunHistory::add_mark(HistoryMark mark) {
  marks_.push_back(std::move(mark));
  if (marks_.size() > kMostMarks) {
    marks_.pop_front();
  }
}

void RunHistory::add_events(const Tick& tick) {
  RoleCounts started;
  RoleCounts ended;
  for (const EventRecord& event : tick.events) {
    const auto known = processes_.find(event.key);
    const ProcessRecord* record = known == processes_.end() ? nullptr : &known->second.record;
    switch (event.kind) {
      case EventKind::kSpawn:
        started.add(event.key, record);
        break;
      case EventKind::kExit:
        ended.add(event.key, record);
        break;
      case EventKind::kOomKill:
        add_mark({event.t_s, HistoryMark::Kind::kOomKill, "OOM kill: " + event.detail});
        break;
      case EventKind::kGap:
        add_mark({event.t_s, HistoryMark::Kind::kGap, "gap: " + event.detail});
        break;
      case EventKind::kWarnGrowth:
        add_mark({event.t_s, HistoryMark::Kind::kWarning, "warning: " + event.detail});
        break;
      case EventKind::kGuard:
        add_mark({event.t_s, HistoryMark::Kind::kWarning, "guard: " + event.detail});
        break;
      case EventKind::kMark:
        add_mark({event.t_s, HistoryMark::Kind::kUser, event.detail});
        break;
      case EventKind::kGpuLost:
        add_mark({event.t_s, HistoryMark::Kind::kGpuLost, "GPU lost: " + event.detail});
        break;
      case EventKind::kExec:
      case EventKind::kReparent:
      case EventKind::kRefused:
        break;
    }
  }
  // Who was there from the beginning is no news.
  if (!started.is_empty() && ticks_ > 1) {
    add_mark({now_s_, HistoryMark::Kind::kStarted, "started: " + started.words()});
  }
  if (!ended.is_empty()) {
    add_mark({now_s_, HistoryMark::Kind::kExited, "exited: " + ended.words()});
  }
}

// After the events of the tick, which still name them.
void RunHistory::forget_exited_processes(const Tick& tick) {
  std::unordered_set<ProcessKey> present;
  present.reserve(tick.processes.size());
  for (const ProcessSample& sample : tick.processes) {
    present.insert(sample.key);
  }
  std::erase_if(processes_, [&](const auto& entry) { return !present.contains(entry.first); });
}

void RunHistory::add_markers(const Tick& tick) {
  for (const MarkerRecord& marker : tick.markers) {
    switch (marker.kind) {
      case MarkerKind::kEpoch:
        add_mark({marker.t_s, HistoryMark::Kind::kEpoch, fmt::format("epoch {}", marker.value)});
        break;
      case MarkerKind::kPhaseBegin:
        phases_.push_back({marker.t_s, std::nullopt, marker.name, phase_kind(marker.name)});
        if (phases_.size() > kMostMarks) {
          phases_.pop_front();
        }
        break;
      case MarkerKind::kPhaseEnd: {
        const auto open = std::find_if(phases_.rbegin(), phases_.rend(), [&](const auto& phase) {
          return phase.name == marker.name && !phase.to_s;
        });
        if (open != phases_.rend()) {
          open->to_s = marker.t_s;
        }
        break;
      }
      case MarkerKind::kStep:
      case MarkerKind::kGauge:
        break;
    }
  }
}

std::size_t RunHistory::phase_kind(const std::string& name) {
  const auto known = std::find(phase_names_.begin(), phase_names_.end(), name);
  const auto kind = static_cast<std::size_t>(known - phase_names_.begin());
  if (known == phase_names_.end() && phase_names_.size() < kMostPhaseNames) {
    phase_names_.push_back(name);
  }
  return kind;
}

std::optional<std::uint64_t> RunHistory::first_role_bytes(Role role) const {
  const auto it = role_courses_.find(static_cast<int>(role));
  return it == role_courses_.end() ? std::nullopt : std::optional(it->second.first_bytes);
}

const RecentRate* RunHistory::role_rate(Role role) const {
  const auto it = role_courses_.find(static_cast<int>(role));
  return it == role_courses_.end() ? nullptr : &it->second.rate;
}

std::vector<HistoryPoint> RunHistory::timeline(double from_s, double to_s) const {
  std::vector<HistoryPoint> points;
  const double recent_from = recent_.empty() ? to_s : recent_.front().t_s;
  if (from_s < recent_from) {
    for (const tracker::Cell& cell : whole_.cells()) {
      if (cell.t_s >= from_s && cell.t_s < std::min(recent_from, to_s)) {
        points.push_back({cell.t_s, cell.min_bytes, cell.max_bytes, step_of(cell)});
      }
    }
  }
  const auto first = std::lower_bound(recent_.begin(), recent_.end(), from_s,
                                      [](const HistoryPoint& p, double t) { return p.t_s < t; });
  for (auto it = first; it != recent_.end() && it->t_s <= to_s; ++it) {
    points.push_back(*it);
  }
  return points;
}

}  // namespace tidemark::dashboard
