// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "tracker/compare/run_diff.h"

namespace tidemark::tests {

inline constexpr double kMiB = 1024.0 * 1024.0;

// A run and what a tracker would say about it, made by hand: a tree with one sample per step that
// stands at `floor_mib`.
struct HandMadeRun {
  tracker::RunTracks tracks;
  tracker::RunVerdict verdict;

  tracker::SeriesVerdict& tree() { return verdict.tracks[0].series; }
  tracker::JudgedRun judged() const { return {tracks, verdict, std::nullopt}; }
};

inline void fill(tracker::Series& series, double steps, double mib, double first_step) {
  for (double n = 0; n <= steps; ++n) {
    series.add(n / 2, first_step + n, mib * kMiB);
  }
}

inline HandMadeRun settled_run(double floor_mib, double steps = 400, double first_step = 0) {
  HandMadeRun run;
  tracker::Track tree;
  tree.kind = tracker::TrackKind::kTree;
  fill(tree.of(tracker::Metric::kFootprint), steps, floor_mib, first_step);
  run.tracks.tracks.push_back(std::move(tree));

  tracker::SeriesVerdict reading;
  reading.verdict = tracker::Verdict::kStable;
  reading.confidence = 0.9;
  reading.axis = tracker::Axis::kSteps;
  reading.first_floor_bytes = floor_mib * kMiB;
  reading.last_floor_bytes = floor_mib * kMiB;
  reading.max_bytes = floor_mib * kMiB;
  reading.samples = static_cast<std::uint64_t>(steps) + 1;
  reading.smallest_detectable_per_step = 0.01 * kMiB;
  reading.smallest_detectable_per_s = 0.02 * kMiB;
  for (double n = 0; n <= steps; n += steps / 20) {
    const double step = first_step + n;
    reading.floor.push_back(
        {step, {n / 2, step}, floor_mib * kMiB, floor_mib * kMiB, floor_mib * kMiB});
  }
  run.verdict.verdict = reading.verdict;
  run.verdict.tracks.push_back({0, tracker::Metric::kFootprint, std::move(reading)});
  return run;
}

// The same with a leak of `mib_per_step`, known to a tenth of it.
inline HandMadeRun leaking_run(double floor_mib, double mib_per_step) {
  HandMadeRun run = settled_run(floor_mib);
  tracker::Pattern leak;
  leak.kind = tracker::PatternKind::kLeak;
  leak.rate.bytes_per_step = mib_per_step * kMiB;
  leak.rate.low_bytes_per_step = 0.9 * mib_per_step * kMiB;
  leak.rate.high_bytes_per_step = 1.1 * mib_per_step * kMiB;
  leak.rate.bytes_per_s = 2 * mib_per_step * kMiB;
  leak.rate.low_bytes_per_s = 1.8 * mib_per_step * kMiB;
  leak.rate.high_bytes_per_s = 2.2 * mib_per_step * kMiB;
  run.tree().patterns.push_back(leak);
  run.tree().verdict = tracker::Verdict::kLeak;
  run.verdict.verdict = tracker::Verdict::kLeak;
  return run;
}

inline void add_spikes(HandMadeRun& run, std::uint64_t count, double height_mib,
                       double period_steps) {
  tracker::Pattern spikes;
  spikes.kind = tracker::PatternKind::kSpikes;
  spikes.count = count;
  spikes.height_bytes = height_mib * kMiB;
  spikes.period_steps = period_steps;
  run.tree().patterns.push_back(spikes);
}

inline void add_role(HandMadeRun& run, Role role, std::uint32_t processes, double mib) {
  tracker::Track track;
  track.kind = tracker::TrackKind::kRole;
  track.role = role;
  track.most_processes = processes;
  fill(track.of(tracker::Metric::kFootprint), 400, mib, 0);
  run.tracks.tracks.push_back(std::move(track));
  tracker::SeriesVerdict reading;
  reading.last_floor_bytes = mib * kMiB;
  run.verdict.tracks.push_back(
      {run.tracks.tracks.size() - 1, tracker::Metric::kFootprint, std::move(reading)});
}

}  // namespace tidemark::tests
