// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/check.h"

namespace CLI {  // NOLINT(readability-identifier-naming): of the library
class App;
}  // namespace CLI

namespace tidemark::cli {

// `options` outlives the parser.
CLI::App* add_check(CLI::App& app, CheckOptions& options);

}  // namespace tidemark::cli
