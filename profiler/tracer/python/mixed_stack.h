// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/tracer/python/interpreter.h"
#include "profiler/tracer/unwind/stack_trace.h"

namespace tidemark::tracer {

inline constexpr std::size_t kMaxStack = 256;

// The frames of a stack that a site is made of, innermost first: native ones and those of Python.
struct StackView {
  std::uint32_t depth = 0;
  bool truncated = false;
  const std::uint64_t* value = nullptr;  // native: the program counter
  const std::uint64_t* hash = nullptr;   // of the frames i..depth-1; never 0
  const std::uint64_t* mark = nullptr;   // see ModuleTable::marks(); nullptr: none
  // The frame of Python in `frames` that each is; kNativeFrame: it is native. nullptr: all are.
  static constexpr std::uint16_t kNativeFrame = 0xffff;
  // The outermost one may be no frame, but say that the stack goes on in the thread that started
  // this one, at `origin`.
  static constexpr std::uint16_t kThreadStart = 0xfffe;
  const std::uint16_t* python = nullptr;
  const PythonFrames* frames = nullptr;
  std::uint32_t origin = 0;  // a node; 0: the stack ends with its last frame

  bool is_native(std::size_t frame) const noexcept {
    return python == nullptr || python[frame] == kNativeFrame;
  }
};

// A stack of native frames and frames of Python. Each native frame that evaluates Python code gives
// way to the frames that it evaluates: it is the one whose part of the stack their anchor is in, so
// no symbol has to be known; where there are no anchors, it is by its function. Native frames of
// the interpreter further out than the first frame of Python only pass calls on: they are left out.
class MixedStack {
 public:
  // `marks`: of the frames of `native`, or nullptr. The view is of this object, `native` and
  // `python`, as long as they stay as they are.
  StackView merge(const StackTrace& native, const std::uint64_t* marks, const PythonFrames& python,
                  const PythonInterpreter& interpreter) noexcept;
  // The native frames, and behind them those of the stack at a node, which has started the thread.
  StackView add_origin(const StackTrace& native, const std::uint64_t* marks,
                       std::uint32_t node) noexcept;

 private:
  void hash_all() noexcept;
  void add(std::uint64_t value, std::uint64_t mark, std::uint16_t python) noexcept;

  std::uint32_t depth_ = 0;
  bool truncated_ = false;
  std::uint64_t value_[kMaxStack] = {};
  std::uint64_t hash_[kMaxStack] = {};
  std::uint64_t mark_[kMaxStack] = {};
  std::uint16_t python_[kMaxStack] = {};
};

}  // namespace tidemark::tracer
