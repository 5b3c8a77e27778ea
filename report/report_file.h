// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "common/result.h"

namespace tidemark::report {

// A report is replaced as a whole (common/atomic_file.h); "-" is the standard output.
Status write_report_file(const std::string& path, std::string_view text);

// Whether write_report_file() could work, asked before there is something to write. Creates
// nothing.
Status can_write_report(const std::string& path);

}  // namespace tidemark::report
