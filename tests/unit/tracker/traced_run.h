// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "tests/support/site_run.h"
#include "tracker/curve/judge.h"
#include "tracker/sites/site_tracks.h"

// Traced runs as the tests of their ranking need them.
namespace tidemark::tracker {

inline RunSites built(const std::vector<Tick>& ticks) {
  SiteTrackBuilder builder;
  (void)builder.begin({});
  for (const Tick& tick : ticks) {
    (void)builder.add(tick);
  }
  return builder.sites();
}

inline RunSites built(const tests::SiteRun& run, std::size_t seconds) {
  return built(run.ticks(seconds));
}

inline tests::SiteRun one_process() {
  tests::SiteRun run;
  run.add_process(tests::trainer_record());
  return run;
}

inline Options short_warmup() {
  Options options;
  options.warmup.seconds = 60.0;
  return options;
}

}  // namespace tidemark::tracker
