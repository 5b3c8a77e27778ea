// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <cstddef>

namespace tidemark::tracer {

// Whether a filter of system calls (seccomp) can do worse to a call than to let it fail: end the
// process, send it a signal, stop it until another process answers, or pretend that it was done.
bool may_harm(const sock_filter* filter, std::size_t count) noexcept;

// The same of what a program hands to the kernel, which may not be readable: then it harms nobody.
bool may_harm(const sock_fprog* program) noexcept;

}  // namespace tidemark::tracer
