// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/wire/probe_layout.h"

// The probe: a library that the tool loads into a process that runs, to try out there what memory
// it gives back. It starts one thread, which does what it is asked for, one order at a time, and
// ends when it is told to or the tool is not there any more. The library then stays, and does
// nothing; the next start uses it again.
namespace tidemark::probe {

// Starts the thread, unless it runs: 0, or an error number. errno stays as it is. To be called in
// a thread of the process that may call anything.
int start(wire::ProbeControl& control) noexcept;

}  // namespace tidemark::probe
