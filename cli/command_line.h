// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <variant>

#include "cli/check.h"
#include "cli/demo.h"
#include "cli/diff.h"
#include "cli/export.h"
#include "cli/find.h"
#include "cli/guard.h"
#include "cli/monitor.h"
#include "cli/profile.h"
#include "cli/track.h"

namespace tidemark::cli {

// Of the tool, "0.1.0".
std::string_view version();

// What the user asked for: one subcommand with its options, or nothing to run any more (help was
// printed, or the usage was wrong) and the exit code.
using Command = std::variant<int, FindOptions, MonitorOptions, TrackOptions, ProfileOptions,
                             CheckOptions, ExportOptions, DiffOptions, DemoOptions, GuardOptions>;

Command parse_command_line(int argc, char** argv);

}  // namespace tidemark::cli
