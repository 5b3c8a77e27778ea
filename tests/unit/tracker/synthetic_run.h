// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tracker/run/run_tracks.h"

namespace tidemark::tests {

inline constexpr double kMB = 1e6;
inline constexpr double kGB = 1e9;

using Shape = std::function<double(double)>;  // bytes at a time of the run

inline Shape flat(double bytes) {
  return [=](double) { return bytes; };
}
// From `low` at `from_s` in a straight line to `high` at `to_s`, and there for ever.
inline Shape ramp(double low, double high, double from_s, double to_s) {
  return [=](double t_s) {
    return low + (high - low) * std::clamp((t_s - from_s) / (to_s - from_s), 0.0, 1.0);
  };
}
inline Shape sum(Shape a, Shape b) {
  return [a = std::move(a), b = std::move(b)](double t_s) { return a(t_s) + b(t_s); };
}

// One process of a made-up run.
struct Actor {
  Role role = Role::kOther;
  Shape own;    // anonymous + shared + swapped, as the process sees it
  Shape once;   // its part of that when shared pages count once; unset: all of it
  Shape file;   // unset: unknown
  Shape shmem;  // part of `own`; unset: unknown
  Shape swap;   // part of `own`; unset: unknown
  Shape gpu;    // unset: none
  double started_s = 0.0;
  double exited_s = std::numeric_limits<double>::infinity();
  std::string comm = "python3";
  double age_at_start_s = 0.0;
};

inline Actor trainer(Shape own) {
  Actor actor;
  actor.role = Role::kTrainer;
  actor.own = std::move(own);
  return actor;
}
inline Actor worker(Role role, Shape own, Shape once = {}) {
  Actor actor;
  actor.role = role;
  actor.own = std::move(own);
  actor.once = std::move(once);
  return actor;
}
inline Actor loader(double started_s, double exited_s = std::numeric_limits<double>::infinity()) {
  Actor actor = worker(Role::kDataloaderWorker, flat(100 * kMB));
  actor.started_s = started_s;
  actor.exited_s = exited_s;
  return actor;
}

// Samples a cast of processes as the monitor would: each of them, each role and the tree. The noise
// is a fixed sequence.
class SyntheticRun {
 public:
  SyntheticRun(double length_s, double tick_s) : length_s_(length_s), tick_s_(tick_s) {}

  SyntheticRun& add(Actor actor) {
    cast_.push_back(std::move(actor));
    return *this;
  }
  SyntheticRun& add(int times, const Actor& actor) {
    cast_.insert(cast_.end(), static_cast<std::size_t>(times), actor);
    return *this;
  }
  SyntheticRun& steps_per_s(double pace) {
    pace_ = pace;
    return *this;
  }
  SyntheticRun& noise(double bytes) {
    noise_bytes_ = bytes;
    return *this;
  }
  SyntheticRun& unheld_shm(Shape shape) {
    shm_ = std::move(shape);
    return *this;
  }
  SyntheticRun& phase(const std::string& name, double from_s, double to_s) {
    events_.push_back({from_s, tracker::RunEvent::Kind::kPhaseBegin, Role::kOther, name});
    events_.push_back({to_s, tracker::RunEvent::Kind::kPhaseEnd, Role::kOther, name});
    return *this;
  }

  tracker::RunTracks play() const {
    using tracker::Metric;
    using tracker::Track;
    Track tree;
    tree.kind = tracker::TrackKind::kTree;
    std::map<Role, Track> roles;
    std::vector<Track> processes(cast_.size());
    Track shm;
    shm.kind = tracker::TrackKind::kShm;
    std::uint32_t random = 1;
    const auto jitter = [&] {
      random = random * 1664525U + 1013904223U;
      return noise_bytes_ * (static_cast<double>(random >> 8) / 8388608.0 - 1.0);
    };
    std::uint32_t most = 0;
    for (double t_s = 0.0; t_s <= length_s_; t_s += tick_s_) {
      const double step = pace_ ? std::floor(t_s * *pace_) : tracker::kUnknown;
      std::map<Role, Totals> totals;
      Totals all;
      for (std::size_t i = 0; i < cast_.size(); ++i) {
        const Actor& actor = cast_[i];
        if (t_s < actor.started_s || t_s >= actor.exited_s) {
          continue;
        }
        const Totals now = sample(actor, t_s, jitter(), step, processes[i]);
        totals[actor.role].add(now);
        all.add(now);
      }
      for (const auto& [role, total] : totals) {
        record(total, t_s, step, roles[role]);
      }
      record(all, t_s, step, tree);
      most = std::max(most, all.processes);
      if (shm_) {
        shm.of(Metric::kFootprint).add(t_s, step, shm_(t_s));
      }
    }
    tree.most_processes = most;
    return assemble(std::move(tree), std::move(roles), std::move(processes), std::move(shm));
  }

 private:
  struct Totals {
    double once = 0.0;
    double rss = 0.0;
    double file_once = 0.0;
    double swap = 0.0;
    std::uint32_t processes = 0;

    void add(const Totals& other) {
      once += other.once;
      rss += other.rss;
      file_once += other.file_once;
      swap += other.swap;
      processes += other.processes;
    }
  };

  static Totals sample(const Actor& actor, double t_s, double jitter, double step,
                       tracker::Track& track) {
    using tracker::Metric;
    const double own = std::max(actor.own(t_s) + jitter, 0.0);
    const double once = actor.once ? std::max(actor.once(t_s) + jitter, 0.0) : own;
    const double swap = actor.swap ? actor.swap(t_s) : 0.0;
    const double file = actor.file ? actor.file(t_s) : 0.0;
    track.of(Metric::kFootprint).add(t_s, step, own);
    track.of(Metric::kRss).add(t_s, step, own - swap + file);
    track.of(Metric::kSwap).add(t_s, step, swap);
    if (actor.file) {
      track.of(Metric::kRssFile).add(t_s, step, file);
    }
    if (actor.shmem) {
      track.of(Metric::kRssShmem).add(t_s, step, actor.shmem(t_s));
    }
    if (actor.gpu) {
      track.of(Metric::kGpu).add(t_s, step, actor.gpu(t_s));
    }
    return {once, own - swap + file, file, swap, 1};
  }

  static void record(const Totals& total, double t_s, double step, tracker::Track& track) {
    using tracker::Metric;
    track.of(Metric::kFootprint).add(t_s, step, total.once);
    track.of(Metric::kRss).add(t_s, step, total.rss);
    track.of(Metric::kPss).add(t_s, step, total.once - total.swap + total.file_once);
    track.of(Metric::kSwap).add(t_s, step, total.swap);
    track.most_processes = std::max(track.most_processes, total.processes);
  }

  tracker::RunTracks assemble(tracker::Track tree, std::map<Role, tracker::Track> roles,
                              std::vector<tracker::Track> processes, tracker::Track shm) const {
    tracker::RunTracks run;
    run.tracks.push_back(std::move(tree));
    for (auto& [role, track] : roles) {
      track.kind = tracker::TrackKind::kRole;
      track.role = role;
      run.tracks.push_back(std::move(track));
    }
    for (std::size_t i = 0; i < cast_.size(); ++i) {
      tracker::Track& track = processes[i];
      track.kind = tracker::TrackKind::kProcess;
      track.key = {static_cast<pid_t>(100 + i), 1};
      track.role = cast_[i].role;
      track.comm = cast_[i].comm;
      track.started_s = cast_[i].started_s;
      track.age_at_start_s = cast_[i].age_at_start_s;
      if (cast_[i].exited_s <= length_s_) {
        track.exited_s = cast_[i].exited_s;
      }
      run.tracks.push_back(std::move(track));
    }
    if (shm_) {
      run.tracks.push_back(std::move(shm));
    }
    run.events = events_;
    return run;
  }

  double length_s_;
  double tick_s_;
  std::vector<Actor> cast_;
  std::optional<double> pace_;
  double noise_bytes_ = 2e6;
  Shape shm_;
  std::vector<tracker::RunEvent> events_;
};

}  // namespace tidemark::tests
