// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace tidemark::tracker {

// Growth that has become slower and slower ever since the start, from third to third; what happens
// in the first tenth is starting up and does not count. Caches that fill look like that.
bool slows_down(std::span<const double> x, std::span<const double> y);

}  // namespace tidemark::tracker
