// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tidemark::tracer {

// The environment for a program that this process is about to become or to start: the one that the
// caller passes, with the variables of the tracer added, or removed when children are not traced:
// because that was not asked for, or because the program could not be, and would complain about the
// library that it does not find. Uses only the stack, because a child of vfork may neither allocate
// nor change the memory of its parent, and little of it, because a signal handler may have only a
// few kilobytes.
class ChildEnvironment {
 public:
  // `environment` may be nullptr. `file` is the program, "" where its name is not known.
  ChildEnvironment(const char* file, char* const* environment) noexcept;

  // The sizes of the buffers for fill(). 0 entries: nothing needs to be changed.
  std::size_t entries() const noexcept { return entries_; }
  std::size_t text_bytes() const noexcept { return text_bytes_; }
  // Returns the environment to use: `entries`, or the caller's own.
  char* const* fill(char** entries, char* text) const noexcept;

  // Finds the paths of the tracer and of libtidemark_operators.so. Not in a hook.
  static void set_up(char** environment) noexcept;

 private:
  char* write_preload(char* text) const noexcept;

  char* const* given_;
  const char* preload_ = "";  // the value of the caller's LD_PRELOAD
  std::size_t entries_ = 0;
  std::size_t text_bytes_ = 0;
  bool follows_ = false;  // the program is traced
  // Whether libtidemark_operators.so is preloaded: if an allocator with an operator new of its own
  // is preloaded, or if the same program is started again for which it was preloaded here, because
  // that may be linked to such an allocator.
  bool with_operators_ = false;
  bool outdated_ = false;  // the mode has changed since this process was started
};

}  // namespace tidemark::tracer
