// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/profile_report.h"

namespace tidemark::report {

// One object, as docs/output.md has it; without a line end.
std::string profile_json(const ProfileReport& report);

}  // namespace tidemark::report
