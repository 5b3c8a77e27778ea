// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/profile_report.h"

namespace tidemark::cli {

// One object, as docs/output.md has it; without a line end.
std::string profile_json(const ProfileReport& report);

}  // namespace tidemark::cli
