// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/python/mixed_stack.h"

#include "profiler/wire/trace_layout.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {

void MixedStack::add(std::uint64_t value, std::uint64_t mark, std::uint16_t python) noexcept {
  if (depth_ == kMaxStack) {
    truncated_ = true;
    return;
  }
  value_[depth_] = value;
  mark_[depth_] = mark;
  python_[depth_] = python;
  ++depth_;
}

StackView MixedStack::merge(const StackTrace& native, const std::uint64_t* marks,
                            const PythonFrames& python,
                            const PythonInterpreter& interpreter) noexcept {
  depth_ = 0;
  truncated_ = native.truncated || python.truncated;
  const std::size_t first = kMaxFrames - native.depth;
  const std::uint64_t* const sp = native.has_stack_pointers ? native.frames.sp + first : nullptr;
  std::uint32_t next = 0;  // frame of Python
  const auto add_python = [&](std::uint64_t mark) {
    const PythonFrame& frame = python.frame[next];
    add(frame.identity ^ (frame.unit * 0x9e3779b97f4a7c15), mark, static_cast<std::uint16_t>(next));
    ++next;
    return frame.ends_call;
  };
  for (std::uint32_t i = 0; i < native.depth; ++i) {
    const std::uint64_t mark = marks == nullptr ? 0 : marks[i];
    const std::uint64_t pc = native.pc[i];
    const std::uint32_t before = next;
    if (next < python.depth && sp != nullptr && python.frame[next].anchor != 0) {
      const std::uint64_t end = i + 1 < native.depth ? sp[i + 1] : ~std::uint64_t{0};
      while (next < python.depth && python.frame[next].anchor >= sp[i] &&
             python.frame[next].anchor < end) {
        add_python(mark);
      }
    } else if (next < python.depth && interpreter.is_evaluation(pc)) {
      while (!add_python(mark) && next < python.depth) {
      }
    }
    if (next == before && (next == 0 || !interpreter.is_own_code(pc))) {
      add(pc, mark, StackView::kNativeFrame);
    }
  }
  while (next < python.depth) {  // those beyond the last native frame that was walked to
    add_python(0);
  }
  hash_all();
  return {depth_, truncated_, value_, hash_, marks == nullptr ? nullptr : mark_, python_, &python};
}

StackView MixedStack::add_origin(const StackTrace& native, const std::uint64_t* marks,
                                 std::uint32_t node) noexcept {
  depth_ = 0;
  truncated_ = native.truncated;
  for (std::uint32_t i = 0; i < native.depth; ++i) {
    add(native.pc[i], marks == nullptr ? 0 : marks[i], StackView::kNativeFrame);
  }
  add(wire::mix(node), 0, StackView::kThreadStart);
  hash_all();
  return {depth_,  truncated_, value_, hash_, marks == nullptr ? nullptr : mark_,
          python_, nullptr,    node};
}

void MixedStack::hash_all() noexcept {
  std::uint64_t hash = kHashOfNoFrames;
  for (std::uint32_t i = depth_; i-- > 0;) {
    hash = hash_with_frame(hash, value_[i]);
    hash_[i] = hash;
  }
}

}  // namespace tidemark::tracer
