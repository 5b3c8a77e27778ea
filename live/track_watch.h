// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "common/records.h"
#include "live/track.h"

namespace tidemark::live {

// `tidemark track` of a target that runs: a line now and then, the answer at the end. `on_tick`
// hears of every sample.
int watch_and_track(const TrackOptions& options,
                    std::function<void(const Tick& tick)> on_tick = {});

}  // namespace tidemark::live
