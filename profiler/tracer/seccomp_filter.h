// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <cstddef>

namespace tidemark::tracer {

// Whether a seccomp filter can do worse to a call than let it fail: kill the process, send it a
// signal, stop it until another process answers, or pretend that the call was made.
bool may_harm(const sock_filter* filter, std::size_t count) noexcept;

// The same for what a program passes to the kernel. False where that is not readable: the kernel
// will refuse it.
bool may_harm(const sock_fprog* program) noexcept;

}  // namespace tidemark::tracer
