// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "common/records.h"
#include "dashboard/dashboard_model.h"
#include "tracker/run/judged_run.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::dashboard {

// Follows the lines of a run that an allocation tracer is in. Not thread-safe.
class SiteJudge {
 public:
  void add(const Tick& tick) { (void)builder_.add(tick); }  // there is no file behind it
  // Those that grow, the fastest first. Takes time linear in what was added.
  std::vector<SiteRow> rows(const tracker::JudgeOptions& judging, std::size_t most) const;

 private:
  tracker::SiteTrackBuilder builder_;
};

}  // namespace tidemark::dashboard
