// SPDX-License-Identifier: Apache-2.0
// What the library shows to the tool.
#include "profiler/probe/probe.h"
#include "profiler/wire/probe_layout.h"

#include "profiler/probe/poison.h"

using namespace tidemark;  // NOLINT(google-build-using-namespace): C names follow

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): C names
[[gnu::visibility("default")]] constinit wire::ProbeControl tidemark_probe_control = {
    wire::kProbeVersion, 10'000'000'000, {}, {}, {}, {}, {}, {}, 0, {}, {}};

// An error number; 0: the thread runs.
[[gnu::visibility("default")]] int tidemark_probe_start(const char* /*request*/) {
  return probe::start(tidemark_probe_control);
}
// NOLINTEND(readability-identifier-naming)
}
