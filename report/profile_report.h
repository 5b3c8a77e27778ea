// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/records.h"
#include "tracker/run/judged_run.h"
#include "tracker/sites/site_ranking.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::report {

// How far the figures can be trusted, over all traced processes.
struct ProfileCoverage {
  std::optional<double> frees_known_share;    // only exact tracers know them
  std::optional<double> rss_explained_share;  // of the process that grew most
  // Of jobs that were attached to: of what that process has grown by since. Older memory is in no
  // site, so that the share above says little.
  std::optional<double> growth_explained_share;
  std::uint64_t dropped_records = 0;
  std::uint64_t truncated_stacks = 0;
  std::uint64_t empty_stacks = 0;
  std::uint64_t tracer_bytes = 0;      // the tracer's own memory, where it has most
  std::uint64_t tracer_sum_bytes = 0;  // in all processes that are there at the end
  std::uint64_t sites = 0;
  std::uint64_t rest_bytes = 0;  // of sites too small to be followed
  std::vector<TraceMode> modes;
  std::optional<std::uint64_t> sample_every_bytes;
  std::vector<std::string> problems;  // of tracers, and of files that are not used; raw bytes
};

// An option that counts steps where too few are known: the default applies.
struct IgnoredOption {
  std::string_view name;  // "warmup", "min_leak"
  std::string text;       // "--warmup counts steps, and ..."
};

// All that a report of `tidemark profile` says. `run` outlives it.
struct ProfileReport {
  const tracker::RunSites* run = nullptr;
  std::string command;
  tracker::SiteRanking ranking;
  tracker::Grouping by = tracker::Grouping::kLine;  // what text leads with
  std::vector<tracker::UntracedGrowth> untraced;    // the one that grew most first
  ProfileCoverage coverage;
  ShmGrowthReport shm;
  std::vector<std::pair<std::string, std::uint64_t>> losses;
  std::vector<IgnoredOption> ignored;
  std::size_t top = 10;

  const std::vector<tracker::RankedLine>& lines() const { return ranking.by(by); }
};

ProfileReport make_report(const tracker::RunSites& run, const tracker::JudgeOptions& judge,
                          std::size_t top);

// Which share of what the process that grew most has grown by since it is traced is in sites.
// nullopt where it has grown by too little to be compared.
std::optional<double> explained_growth(const ProfileReport& report);

// Blocks, stacks and mappings that found no place in the tracer's tables.
struct LostRecords {
  std::uint64_t records = 0;
  double share = 0.0;  // of all that would have been there, about
};
// nullopt while they are few. What is true of the rest is then not true of the process: a line that
// stopped growing, memory that no site explains.
std::optional<LostRecords> lost_records(const ProfileReport& report);

// After a few samples everything grows: such a figure is not worth printing.
bool is_seen_long_enough(const tracker::RankedLine& line);
// The lines that grow and were seen long enough, the fastest first; not those that grow by less
// than a hundredth of it.
std::vector<const tracker::RankedLine*> growing_lines(const ProfileReport& report);

// The process of a key; the last one of that key, should it have called exec.
const tracker::TracedProcess* find_process(const tracker::RunSites& run, const ProcessKey& key);

}  // namespace tidemark::report
