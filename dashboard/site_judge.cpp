// SPDX-License-Identifier: Apache-2.0
#include "dashboard/site_judge.h"

#include <algorithm>

namespace tidemark::dashboard {

std::vector<SiteRow> SiteJudge::rows(const LineNamer& namer, const tracker::JudgeOptions& judging,
                                     std::size_t most) const {
  const tracker::RunSites& run = builder_.sites();
  const bool is_traced = std::any_of(run.processes.begin(), run.processes.end(),
                                     [](const tracker::TracedProcess& process) {
                                       return process.last.mode != TraceMode::kDormant;
                                     });
  if (!is_traced || !namer.text) {
    return {};
  }
  tracker::Options options;
  options.warmup = judging.warmup;
  options.min_leak = judging.min_leak;
  const tracker::SiteRanking ranking = tracker::rank_sites(
      run, options, [&](const SiteRecord& site) { return namer.lines_of(run, site); });
  std::vector<SiteRow> rows;
  for (const tracker::RankedLine& line : ranking.lines) {
    if (!line.grows() || rows.size() >= most) {
      break;
    }
    rows.push_back({namer.text(run, ranking.sites[line.sites.front()], line.name),
                    std::string(tracker::verdict_name(line.verdict)), line.growth_bytes_per_s,
                    line.live_bytes});
  }
  return rows;
}

}  // namespace tidemark::dashboard
