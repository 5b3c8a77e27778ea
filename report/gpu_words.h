// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tracker/curve/series_verdict.h"
#include "tracker/run/run_tracks.h"
#include "tracker/run/run_verdict.h"

namespace tidemark::report {

// What a curve is of: "footprint of trainer, pid 1240 (python3)", "GPU memory of the whole tree".
std::string curve_text(tracker::Metric metric, const tracker::Track& track);

// "GPU memory grew by 1.2 GiB since step 25, torch's allocator explains 240 MiB (20 %): ...".
std::string gpu_growth_text(const tracker::GpuGrowth& growth, tracker::Axis axis);

}  // namespace tidemark::report
