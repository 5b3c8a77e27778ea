// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/records.h"

namespace tidemark::tests {

// Every field of a record as text, so that a failed comparison shows which one differs.
std::string text_of(const RunInfo& info);
std::string text_of(const ProcessRecord& process);
std::string text_of(const ProcessSample& sample);
std::string text_of(const Tick& tick);

}  // namespace tidemark::tests
