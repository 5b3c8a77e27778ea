// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidemark {

// Prints where and why to stderr and aborts. Async-signal-safe.
[[noreturn]] void check_failed(const char* condition, const char* why, const char* file, int line);

}  // namespace tidemark

// A broken invariant of our own code: message and abort, in all builds.
#define TIDEMARK_CHECK(condition, why)                                 \
  do {                                                                 \
    if (!(condition)) {                                                \
      ::tidemark::check_failed(#condition, (why), __FILE__, __LINE__); \
    }                                                                  \
  } while (false)
