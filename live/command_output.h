// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/result.h"

namespace tidemark::live {

// Makes an empty, private file for the output of a command: beside the run file when there is one,
// else in the folder for temporary files. Never one that was there before.
Result<std::string> make_command_output(const std::string& run_file);

}  // namespace tidemark::live
