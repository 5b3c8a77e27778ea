// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tracker/curve/series.h"
#include "tracker/run/run_tracks.h"

namespace tidemark::tracker {

// The curve of a track that is judged, and what it counts.
struct JudgedCurve {
  Metric metric = Metric::kFootprint;
  Series series;
};

// `asked`: that metric and no other; but where the driver does not tell what each process has of a
// GPU, all that its devices hold. Otherwise footprint where it or its parts are known, else rss
// for one process and pss (then rss) for roles and trees. nullopt: there is no such curve.
std::optional<JudgedCurve> choose_curve(const Track& track, std::optional<Metric> asked);

// How large a process is, by whichever curve there is; nullptr: none.
const Series* size_curve(const Track& track);

}  // namespace tidemark::tracker
