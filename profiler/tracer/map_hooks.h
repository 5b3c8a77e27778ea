// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidemark::tracer {

// Looks up the real functions. From the constructor.
void find_next_map() noexcept;

}  // namespace tidemark::tracer
