// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "common/units.h"
#include "tracker/curve/options.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::cli {

struct DiffOptions {
  std::string a;  // any recording that we read
  std::string b;
  bool json = false;
  // How both are judged, as in TrackOptions.
  tracker::Warmup warmup;
  std::optional<Rate> min_leak;
  std::optional<tracker::Metric> metric;  // nullopt: the best that both have
};

// `tidemark diff`: two recordings side by side, before and after a change. Exit code 0 whatever the
// answer is, 3 when one of them cannot be read.
int run_diff(const DiffOptions& options);

}  // namespace tidemark::cli
