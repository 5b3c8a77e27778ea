// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tracker/curve/options.h"
#include "tracker/curve/reading.h"
#include "tracker/curve/series.h"

namespace tidemark::tracker {

// Warm-up, spikes or leak? Pure: the same series and options give the same reading, on any machine
// and at any time of day. Takes time linear in the cells of the series.
Reading judge(const Series& series, const Options& options);

}  // namespace tidemark::tracker
