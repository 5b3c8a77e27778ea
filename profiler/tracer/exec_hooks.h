// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidemark::tracer {

// Looks up the real functions, because a child of vfork must not. From the constructor.
void find_next_exec(char** environment) noexcept;

}  // namespace tidemark::tracer
