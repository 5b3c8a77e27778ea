// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "common/result.h"

namespace tidemark::cli {

// Writes a whole file, which appears when it is complete and replaces what was there; readable as
// the umask has it, for a report is there to be read by others. What is no regular file (/dev/null,
// a pipe) is written to. "-" is the standard output.
Status write_report_file(const std::string& path, std::string_view text);

// Whether write_report_file() could work, asked before there is something to write. Creates
// nothing.
Status can_write_report(const std::string& path);

}  // namespace tidemark::cli
