// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tidemark::tracer {

// Memory for the arguments of a call that starts a program, where they may be too large for the
// stack of the thread. Given back by the destructor, or by the kernel when a child of vfork becomes
// another program: its parent, in whose memory it ran, then goes on without that destructor.
class ExecMemory {
 public:
  explicit ExecMemory(std::size_t bytes) noexcept;
  ~ExecMemory();
  ExecMemory(const ExecMemory&) = delete;
  ExecMemory& operator=(const ExecMemory&) = delete;

  // nullptr: there is none. Zeroed only at its first use.
  void* get() const noexcept { return memory_; }

 private:
  struct Slot;
  static Slot g_slots[];

  Slot* slot_ = nullptr;
  void* memory_ = nullptr;
  bool is_child_of_vfork_;
};

}  // namespace tidemark::tracer
