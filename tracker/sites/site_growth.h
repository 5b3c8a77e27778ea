// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tracker/curve/judge.h"
#include "tracker/curve/series_verdict.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::tracker {

// The sites of one process that have the same frames and hold the same kind of memory. What it
// points to outlives it.
struct CandidateStack {
  const TracedProcess* process = nullptr;
  std::vector<const SiteTrack*> tracks;  // at least one
  double first_bytes = 0.0;              // when it was first seen
  double held_bytes = 0.0;               // see held_late

  double grown_bytes() const { return held_bytes - first_bytes; }
};

// The stacks that grew most and those that are largest, of all processes; at most `most`.
std::vector<CandidateStack> candidate_stacks(const RunSites& run, std::size_t most);

// What a site held in the second half of its time: a process that ends gives all back.
double held_late(const SiteTrack& track);

// One or more sites of one process, judged as one curve of live bytes. What it points to outlives
// it.
struct JudgedSites {
  const TracedProcess* process = nullptr;
  std::vector<const SiteTrack*> tracks;  // at least one
  SeriesVerdict series;
  // How it grows; reserved memory that is not resident does not count. 0 unless it does.
  double per_s = 0.0;
  std::optional<double> per_step;
  double growth_bytes = 0.0;  // since `since`
  Moment since;
  bool came_at_once = false;  // by one allocation, or nearly all of it in the last moments

  bool grows() const { return series.verdict >= Verdict::kGrowing; }
};

// `steps`: of the run.
JudgedSites judge_sites(const TracedProcess& process, std::vector<const SiteTrack*> tracks,
                        const StepTimes& steps, const Options& options);

// Where what was judged ends: a process that ends gives back what it held.
double end_of(const JudgedSites& sites);

// Adds what other sites hold.
void add_held(SiteSample& sum, const SiteSample& held);
// What they hold together; of a process that ended, what they held before it gave all back.
SiteSample held_by(const JudgedSites& sites);

// What a curve changed by between two times, in proportion between its samples: the memory of a
// process and its sites are not looked at in the same moment. nullopt: it has no sample.
std::optional<double> change(const Series& series, double from_s, double to_s);

}  // namespace tidemark::tracker
