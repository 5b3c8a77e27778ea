// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/records.h"
#include "tracker/curve/series_verdict.h"
#include "tracker/run/judged_run.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {

// What became of a number from run A to run B. Less memory is better.
enum class Change {
  kSame,  // within noise
  kBetter,
  kWorse,
  kMixed,    // of a run as a whole: some better, some worse
  kUnclear,  // one of the two is not known
};

enum class DiffWhat {
  kSettledFloor,  // bytes; unknown while the floor still rises
  kGrowthRate,    // bytes per second, or per step when aligned on steps; after warm-up
  kPeak,          // bytes, in the part that both runs have
  kSpikeHeight,   // bytes; unknown without spikes
  kSpikeEvery,    // seconds or steps from one to the next
  kRole,          // bytes, last floor of a role
};

struct DiffValue {
  std::optional<double> value;
  std::optional<double> low;  // 95 % interval of a rate
  std::optional<double> high;
};

struct DiffRow {
  DiffWhat what = DiffWhat::kPeak;
  Role role = Role::kOther;                  // of kRole
  std::array<std::uint32_t, 2> processes{};  // of kRole: the most at one time
  DiffValue a;
  DiffValue b;
  std::optional<double> noise;  // a smaller difference says nothing
  Change change = Change::kUnclear;

  std::optional<double> difference() const;
};

// The floors of both runs at one place.
struct FloorPair {
  double place = 0.0;
  std::optional<double> a_bytes;
  std::optional<double> b_bytes;
};

// How the two runs lie beside each other.
struct Alignment {
  Axis axis = Axis::kTime;
  bool from_start = false;  // step numbers have little in common: counted from each run's first
  double from = 0.0;        // the part that both have
  double to = 0.0;
  std::array<double, 2> first{};  // place of each run's first sample
};

struct DiffSide {
  Verdict verdict = Verdict::kStable;
  bool undetermined = false;
  double confidence = 0.0;
  std::uint64_t samples = 0;
  std::uint64_t spikes = 0;
  bool settled = false;
};

// Two runs, before and after a change: whole trees are compared with each other.
struct RunDiff {
  Metric metric = Metric::kFootprint;
  std::optional<Alignment> alignment;  // nullopt: one knows time only, the other steps only
  DiffSide a;
  DiffSide b;
  Change verdict = Change::kUnclear;
  Change overall = Change::kUnclear;
  std::vector<DiffRow> rows;
  std::vector<FloorPair> floors;

  const DiffRow* find(DiffWhat what) const;
};

// The metric that both trees have, best first; nullopt: none.
std::optional<Metric> common_metric(const RunTracks& a, const RunTracks& b);

// Both must have been judged on `metric`. nullopt when one of them has no verdict on its tree.
std::optional<RunDiff> compare_runs(const JudgedRun& a, const JudgedRun& b, Metric metric);

// "better", "settled_floor": they are in JSON and never change.
std::string_view change_name(Change change);
std::string_view diff_what_name(DiffWhat what);

}  // namespace tidemark::tracker
