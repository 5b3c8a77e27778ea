// SPDX-License-Identifier: Apache-2.0
#include "monitor/tui/site_judge.h"

#include <algorithm>

namespace tidemark::tui {

std::vector<SiteRow> SiteJudge::rows(const SiteNamer& name, const JudgeOptions& judging,
                                     std::size_t most) const {
  const tracker::RunSites& run = builder_.sites();
  const bool is_traced = std::any_of(run.processes.begin(), run.processes.end(),
                                     [](const tracker::TracedProcess& process) {
                                       return process.last.mode != TraceMode::kDormant;
                                     });
  if (!is_traced || !name) {
    return {};
  }
  tracker::Options options;
  options.warmup = judging.warmup;
  options.min_leak = judging.min_leak;
  std::vector<SiteRow> rows;
  for (const tracker::RankedSite& site : tracker::rank_sites(run, options).sites) {
    if (!site.grows() || rows.size() >= most) {
      break;
    }
    rows.push_back({name(run, site), std::string(tracker::verdict_name(site.verdict)),
                    site.growth_bytes_per_s, site.live_bytes});
  }
  return rows;
}

}  // namespace tidemark::tui
