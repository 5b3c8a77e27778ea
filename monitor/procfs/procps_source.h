// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/result.h"
#include "monitor/procfs/process_source.h"

namespace tidemark::monitor {

// The process table of this machine, read by libproc2. It reads the real /proc only.
Result<std::unique_ptr<ProcessSource>> make_procps_source();

}  // namespace tidemark::monitor
