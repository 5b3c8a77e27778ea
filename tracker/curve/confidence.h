// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tracker/curve/growth_test.h"
#include "tracker/curve/reading.h"

namespace tidemark::tracker {

// How often a reading like this one is right: fitted on generated curves of one seed and checked on
// another (docs/accuracy.md).
double confidence_of(const Reading& reading, const GrowthTest& growth);

}  // namespace tidemark::tracker
