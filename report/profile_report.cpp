// SPDX-License-Identifier: Apache-2.0
#include "report/profile_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/units.h"
#include "tracker/sites/stack_lines.h"

namespace tidemark::report {
namespace {

constexpr double kAtTheEndS = 2.0;  // of the run, about

ProfileCoverage coverage_of(const tracker::RunSites& run, const tracker::SiteRanking& ranking) {
  ProfileCoverage coverage;
  std::uint64_t freed = run.forgotten.freed_blocks;
  std::uint64_t unknown = run.forgotten.unknown_frees;
  coverage.dropped_records = run.forgotten.dropped_records;
  coverage.truncated_stacks = run.forgotten.truncated_stacks;
  coverage.empty_stacks = run.forgotten.empty_stacks;
  coverage.sites = run.forgotten.sites;
  for (const tracker::TracedProcess& process : run.processes) {
    const TraceSample& last = process.last;
    freed += last.freed_blocks;
    unknown += last.unknown_frees;
    coverage.dropped_records += last.dropped_records;
    coverage.truncated_stacks += last.truncated_stacks;
    coverage.empty_stacks += last.empty_stacks;
    coverage.sites += last.sites;
    coverage.rest_bytes += last.rest_bytes;
    const std::uint64_t own = last.file_bytes + last.private_bytes;
    coverage.tracer_bytes = std::max(coverage.tracer_bytes, own);
    coverage.tracer_sum_bytes += process.last_sample_s >= run.end_s - kAtTheEndS ? own : 0;
    if (last.sample_every_bytes) {
      coverage.sample_every_bytes = last.sample_every_bytes;
    }
    if (std::find(coverage.modes.begin(), coverage.modes.end(), last.mode) ==
        coverage.modes.end()) {
      coverage.modes.push_back(last.mode);
    }
    if (!last.problem.empty() && coverage.problems.size() < 10) {
      coverage.problems.push_back("pid " + std::to_string(process.key.pid) + ": " + last.problem);
    }
  }
  const bool is_exact = coverage.modes.size() == 1 && coverage.modes.front() == TraceMode::kExact;
  if (is_exact && freed + unknown > 0) {
    coverage.frees_known_share =
        static_cast<double>(freed) / (static_cast<double>(freed) + static_cast<double>(unknown));
  }
  if (!ranking.processes.empty()) {
    coverage.rss_explained_share = ranking.processes.front().explained_share;
  }
  return coverage;
}

// Of the first line, which the report leads with.
std::vector<IgnoredOption> ignored_by(const tracker::SiteRanking& ranking) {
  std::vector<IgnoredOption> ignored;
  if (ranking.lines.empty()) {
    return ignored;
  }
  const tracker::RankedLine& first = ranking.lines.front();
  constexpr std::string_view kWhy = "counts steps, and too few are known here";
  if (first.warmup_ignored) {
    ignored.push_back(
        {"warmup", fmt::format("--warmup {}: the automatic allowance applies", kWhy)});
  }
  if (first.min_leak_ignored) {
    ignored.push_back({"min_leak", fmt::format("--min-leak {}: the default applies", kWhy)});
  }
  return ignored;
}

// In blocks: a sample stands for as many as the live ones do.
double lost_blocks(const TraceSample& last) {
  const auto records = static_cast<double>(last.dropped_records);
  if (!last.sample_every_bytes || last.live_bytes == 0) {
    return records;
  }
  const double mean_bytes =
      static_cast<double>(last.live_bytes) / std::max(1.0, static_cast<double>(last.live_blocks));
  return records * std::max(1.0, static_cast<double>(*last.sample_every_bytes) / mean_bytes);
}

}  // namespace

ProfileReport make_report(const tracker::RunSites& run, const tracker::JudgeOptions& judge,
                          std::size_t top) {
  ProfileReport report;
  report.run = &run;
  report.top = top;
  const tracker::Options options = tracker::series_options(judge);
  report.ranking = tracker::rank_sites(run, options);
  report.untraced = tracker::untraced_growth(run.untraced, options);
  report.ignored = ignored_by(report.ranking);
  report.shm = run.shm;
  report.losses = run.losses;
  report.coverage = coverage_of(run, report.ranking);
  return report;
}

// Footprint and blocks are not read in the same moment, and new blocks may lie in memory that had
// been freed before: it is never more than all.
std::optional<double> explained_growth(const ProfileReport& report) {
  constexpr double kWorthComparing = 1.0 * kMiB;
  if (report.ranking.processes.empty()) {
    return std::nullopt;
  }
  const tracker::ProcessGrowth& growth = report.ranking.processes.front();
  const tracker::TracedProcess& process = report.run->processes[growth.process];
  if (process.footprint.empty() || process.live.empty()) {
    return std::nullopt;
  }
  const double from_s = std::max(process.footprint.cells().front().t_s,  //
                                 process.live.cells().front().t_s);
  const auto grown = [&](const tracker::Series& series) {
    const auto before = tracker::value_at(series, from_s);
    const auto now = tracker::value_at(series, growth.to_s);
    return before && now ? *now - *before : 0.0;
  };
  const double footprint = grown(process.footprint);
  return footprint < kWorthComparing
             ? std::nullopt
             : std::optional(std::clamp(grown(process.live) / footprint, 0.0, 1.0));
}

std::optional<LostRecords> lost_records(const ProfileReport& report) {
  constexpr double kFew = 0.03;
  LostRecords all;
  double lost = 0.0;
  double live = 0.0;
  for (const tracker::TracedProcess& process : report.run->processes) {
    all.records += process.last.dropped_records;
    lost += lost_blocks(process.last);
    live += static_cast<double>(process.last.live_blocks);
  }
  all.share = lost > 0.0 ? lost / (lost + live) : 0.0;
  // The process that the report is about, should others hide it.
  if (!report.ranking.processes.empty()) {
    const TraceSample& last = report.run->processes[report.ranking.processes.front().process].last;
    const double own = lost_blocks(last);
    const double share = own > 0.0 ? own / (own + static_cast<double>(last.live_blocks)) : 0.0;
    if (share > all.share) {
      all = {last.dropped_records, share};
    }
  }
  return all.share > kFew ? std::optional(all) : std::nullopt;
}

bool is_seen_long_enough(const tracker::RankedLine& line) {
  return !line.needs || !line.needs->more_points;
}

std::vector<const tracker::RankedLine*> growing_lines(const ProfileReport& report) {
  constexpr double kShare = 0.01;
  std::vector<const tracker::RankedLine*> lines;
  for (const tracker::RankedLine& line : report.lines()) {
    const bool grows = line.grows() && is_seen_long_enough(line);
    if (grows &&
        (lines.empty() || line.growth_bytes_per_s >= kShare * lines.front()->growth_bytes_per_s)) {
      lines.push_back(&line);
    }
  }
  return lines;
}

const tracker::TracedProcess* find_process(const tracker::RunSites& run, const ProcessKey& key) {
  const auto it =
      std::find_if(run.processes.rbegin(), run.processes.rend(),
                   [&](const tracker::TracedProcess& process) { return process.key == key; });
  return it == run.processes.rend() ? nullptr : &*it;
}

}  // namespace tidemark::report
