// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

// Who this process is, as others will know it. What /proc does not tell stays 0.
void describe_process(wire::Header& header) noexcept;

}  // namespace tidemark::tracer
