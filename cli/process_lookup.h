// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "common/records.h"

namespace tidemark::cli {

// Finds the record of a process that is or was in the tree; nullptr when it is unknown.
using ProcessLookup = std::function<const ProcessRecord*(const ProcessKey&)>;

}  // namespace tidemark::cli
