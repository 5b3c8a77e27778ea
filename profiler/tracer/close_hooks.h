// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidemark::tracer {

void find_next_close() noexcept;
// As the dynamic linker has it, past our hook: for a reference that the tracer itself took.
int close_quietly(void* handle) noexcept;

}  // namespace tidemark::tracer
