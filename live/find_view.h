// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "live/find.h"
#include "monitor/roles/finder.h"

namespace tidemark::live {

// What `tidemark find` prints on stdout. The text is empty when there is nothing to show; the JSON
// is one line (docs/output.md).
std::string find_text(const monitor::FindResult& result, const FindOptions& options);
std::string find_json(const monitor::FindResult& result, const FindOptions& options);

}  // namespace tidemark::live
