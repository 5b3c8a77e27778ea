// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/check.h"

namespace CLI {  // NOLINT(readability-identifier-naming): of the library
class App;
}  // namespace CLI

namespace tidemark::cli {

// `options` outlives the parser.
CLI::App* add_check(CLI::App& app, CheckOptions& options);
// Empty when what was given fits together. `has_dashes`: a command was announced.
std::string problem_with(const CheckOptions& options, bool has_dashes);

}  // namespace tidemark::cli
