// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tidemark::tracer {

// The environment for a program that this process is about to become or to start: the caller's,
// with what the tracer needs put in, or taken out when children are not to be traced. Lives on the
// stack of the caller, and takes little of it: a child of vfork may neither allocate nor change the
// memory of its parent, and a handler of signals may have but a few kilobytes.
class ChildEnvironment {
 public:
  // Looks at the environment that the caller passes; it may be nullptr. `file` is the program, ""
  // where that is not known by name.
  ChildEnvironment(const char* file, char* const* environment) noexcept;

  // The room that fill() needs: entries, and bytes of text. 0 entries: nothing is to be changed.
  std::size_t entries() const noexcept { return entries_; }
  std::size_t text_bytes() const noexcept { return text_bytes_; }
  // Gives the environment to use: in `entries`, or the caller's own.
  char* const* fill(char** entries, char* text) const noexcept;

  // Learns by which path the tracer was loaded, and where its operators are. Not in a hook.
  static void set_up(char** environment) noexcept;

 private:
  char* write_preload(char* text) const noexcept;

  char* const* given_;
  const char* preload_ = "";  // the caller's libraries
  std::size_t entries_ = 0;
  std::size_t text_bytes_ = 0;
  // An allocator is preloaded that has an operator new of its own, or the program is again one for
  // which they were preloaded here: it may be linked to such an allocator. In any other program
  // operator new stays what it is.
  bool with_operators_ = false;
  bool outdated_ = false;  // the mode is another one by now
};

}  // namespace tidemark::tracer
