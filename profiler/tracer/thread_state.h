// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdint>

namespace tidemark::tracer {

inline constexpr std::uint64_t kStride = 64U << 10U;

// What a thread keeps between two hooks. Initial-exec, trivially constructed and destroyed:
// touching it never allocates, and a thread that ends leaves nothing to do.
struct ThreadState {
  // Bytes that may be allocated before the next block that the recorder looks at. 0 at first and
  // while every block is recorded. The hooks count it down; all else is the recorder's.
  std::uint64_t remaining = 0;
  std::uint64_t beyond = 0;      // bytes from there to the next sample
  std::uint64_t random = 0;      // 0: not seeded yet
  std::uint64_t period = 0;      // for which the gap was drawn
  std::uint64_t last_block = 0;  // recorded last, and what `remaining` was then
  std::uint64_t last_remaining = 0;
  std::uint64_t hook_frame = 0;    // where on the stack the hook is that runs now; 0: none
  std::uint32_t scratch = 0;       // the scratch slot that was used last
  std::uint32_t lane = 0;          // in which it counts, plus one
  std::uint32_t unknown = 0;       // stacks in a row that were not known
  bool orphaned = false;           // forked inside a hook: what that works on is not there
  bool is_filtered_child = false;  // of vfork, which this thread waits for: it is silent

  // The next sample comes after so many bytes.
  void ask_after(std::uint64_t bytes) noexcept {
    remaining = bytes < kStride ? bytes : kStride;
    beyond = bytes - remaining;
  }
};

inline constinit thread_local ThreadState t_thread;

// Whether the hook at `frame` was left by longjmp, now that another one is entered further out, at
// `here`. It cannot be inside of it if both are on one stack. False where that is not sure: the
// handler of a signal may have a stack that lies above the one which it interrupted.
[[gnu::cold]] bool was_left(std::uint64_t frame, std::uint64_t here) noexcept;

// Marks the thread as inside a hook and keeps errno as the application sees it. False: it was
// inside one already (a signal handler that allocates, say); the call is then not recorded, and
// what the outer hook left in the thread's state stays.
//
// A hook that was left by longjmp never ended: see was_left(). Where that cannot tell, one has to
// look at the callers: take_over().
class HookScope {
 public:
  HookScope() noexcept
      : saved_errno_(errno), here_(reinterpret_cast<std::uint64_t>(__builtin_frame_address(0))) {
    first_ = t_thread.hook_frame == 0 ||
             (t_thread.hook_frame < here_ && was_left(t_thread.hook_frame, here_));
    if (first_) {
      t_thread.hook_frame = here_;
    }
  }
  ~HookScope() {
    if (first_) {
      t_thread.hook_frame = 0;
      t_thread.orphaned = false;
    }
    errno = saved_errno_;
  }
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;
  explicit operator bool() const noexcept { return first_; }
  // None of the callers is a hook: the one that is said to run was left.
  void take_over() noexcept {
    first_ = true;
    t_thread.hook_frame = here_;
  }

 private:
  int saved_errno_;
  std::uint64_t here_;
  bool first_;
};

}  // namespace tidemark::tracer
