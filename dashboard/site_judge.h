// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "common/records.h"
#include "dashboard/dashboard_model.h"
#include "dashboard/live_judge.h"
#include "tracker/sites/site_ranking.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::dashboard {

// How call stacks become lines of code that people know.
struct LineNamer {
  // The lines of the user's own that a call stack goes through: see tracker::LinesOf.
  std::function<std::vector<std::string>(const tracker::RunSites& run, const SiteRecord& site)>
      lines_of;
  // One line, escaped. `site` is one of its call stacks.
  std::function<std::string(const tracker::RunSites& run, const tracker::RankedSite& site,
                            const std::string& line)>
      text;
};

// Follows the lines of a run that an allocation tracer is in. Not thread-safe.
class SiteJudge {
 public:
  void add(const Tick& tick) { (void)builder_.add(tick); }  // there is no file behind it
  // Those that grow, the fastest first. Takes time linear in what was added.
  std::vector<SiteRow> rows(const LineNamer& namer, const tracker::JudgeOptions& judging,
                            std::size_t most) const;

 private:
  tracker::SiteTrackBuilder builder_;
};

}  // namespace tidemark::dashboard
