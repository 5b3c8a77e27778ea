// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidemark::tracer {

// A library was unloaded: real functions are looked up again.
void forget_cuda_functions() noexcept;

}  // namespace tidemark::tracer
