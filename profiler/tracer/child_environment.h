// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tidemark::tracer {

// The environment for a program that this process is about to become or to start: the caller's,
// with what the tracer needs put in, or taken out when children are not to be traced. Lives on the
// stack of the caller: a child of vfork may neither allocate nor change the memory of its parent.
class ChildEnvironment {
 public:
  // The entries that fill() needs room for.
  static std::size_t room_for(char* const* environment) noexcept;
  // Fills `entries`, which has that much room. Gives the environment to use: `entries`, or the
  // caller's own where there is nothing to change or the change does not fit.
  char* const* fill(char* const* environment, char** entries) noexcept;

  // Learns by which path the tracer was loaded. Not in a hook.
  static void set_up(char** environment) noexcept;

 private:
  bool make_preload(const char* existing) noexcept;
  bool make_request() noexcept;

  char preload_[8192];
  char request_[4500];
};

}  // namespace tidemark::tracer
