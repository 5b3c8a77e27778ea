// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <variant>

#include "cli/find.h"
#include "cli/monitor.h"

namespace tidemark::cli {

inline constexpr std::string_view kVersion = TIDEMARK_VERSION;

// What the user asked for: one subcommand with its options, or nothing to run any more (help was
// printed, or the usage was wrong) and the exit code.
using Command = std::variant<int, FindOptions, MonitorOptions>;

Command parse_command_line(int argc, char** argv);

}  // namespace tidemark::cli
