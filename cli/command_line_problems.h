// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/check.h"
#include "cli/guard.h"
#include "cli/monitor.h"
#include "cli/profile.h"
#include "cli/track.h"

namespace tidemark::cli {

// What does not fit together in what the user gave: empty, or a sentence for an error.
// `has_dashes`: a command was announced by --.
std::string problem_with(const MonitorOptions& options, bool has_dashes);
std::string problem_with(const TrackOptions& options, bool has_dashes);
std::string problem_with(const ProfileOptions& options, bool has_dashes);
std::string problem_with(const GuardOptions& options, bool has_dashes);
std::string problem_with(const CheckOptions& options, bool has_dashes);

}  // namespace tidemark::cli
