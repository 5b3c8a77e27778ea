// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/profile_model.h"

namespace tidemark::report {

// A speedscope file (https://www.speedscope.app/file-format-schema.json) with one profile of type
// "sampled" per measure; sites whose measure is 0 are left out of it.
std::string export_speedscope(const Profile& profile, const std::vector<ProfileMeasure>& measures);

}  // namespace tidemark::report
