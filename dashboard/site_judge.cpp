// SPDX-License-Identifier: Apache-2.0
#include "dashboard/site_judge.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "tracker/sites/site_ranking.h"
#include "tracker/sites/stack_lines.h"

namespace tidemark::dashboard {
namespace {

// `site` is one of the call stacks of `line`.
std::string line_text(const tracker::RunSites& run, const tracker::RankedSite& site,
                      const std::string& line) {
  constexpr std::size_t kColumns = 120;
  const std::string text =
      tracker::headline(tracker::shown_stack(run, site.frames), line, kColumns);
  return text.empty() ? fmt::format("({} without a name)", allocation_kind_name(site.kind)) : text;
}

}  // namespace

std::vector<SiteRow> SiteJudge::rows(const tracker::JudgeOptions& judging, std::size_t most) const {
  const tracker::RunSites& run = builder_.sites();
  const bool is_traced = std::any_of(run.processes.begin(), run.processes.end(),
                                     [](const tracker::TracedProcess& process) {
                                       return process.last.mode != TraceMode::kDormant;
                                     });
  if (!is_traced) {
    return {};
  }
  const tracker::SiteRanking ranking = tracker::rank_sites(run, tracker::series_options(judging));
  std::vector<SiteRow> rows;
  for (const tracker::RankedLine& line : ranking.lines) {
    if (!line.grows() || rows.size() >= most) {
      break;
    }
    rows.push_back({line_text(run, ranking.sites[line.sites.front()], line.name),
                    std::string(tracker::verdict_name(line.verdict)), line.growth_bytes_per_s,
                    line.live_bytes});
  }
  return rows;
}

}  // namespace tidemark::dashboard
