// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace tidemark::tracer {

inline constexpr std::uint64_t kMaxCountdownBytes = 64U << 10U;
inline constexpr std::uint64_t kNoPeriod = ~std::uint64_t{0};  // not sampled when it last asked

// Where a thread was started, of those that run no Python: a site of wire::SiteKind::kThreadStart,
// which stays what it is.
struct ThreadOrigin {
  std::uint32_t site = 0;  // plus one; 0: not known
  std::uint32_t file = 0;  // SiteRecorder::file(): a forked process has other sites
};

// What a thread keeps between two hooks. Initial-exec, trivially constructed and destroyed: an
// access never allocates, and a thread that ends leaves nothing to do.
struct ThreadState {
  // Bytes that may be allocated before the recorder looks at a block. 0 at first and in exact mode.
  // The hooks count it down; all else is the recorder's.
  std::uint64_t remaining = 0;
  std::uint64_t remaining_later = 0;  // from there to the next sample
  std::uint64_t random = 0;           // state of the generator; 0: not seeded yet
  std::uint64_t period = 0;           // that the gap was drawn for, in bytes
  std::uint64_t last_block = 0;       // recorded last, and what `remaining` was then
  std::uint64_t last_remaining = 0;
  std::uint64_t hook_frame = 0;       // stack address of the hook that runs now; 0: none
  std::uint32_t scratch = 0;          // the scratch slot used last, plus one
  std::uint32_t shard = 0;            // of the sites that this thread counts on, plus one
  std::uint32_t uncached_stacks = 0;  // in a row that the stack cache did not have
  ThreadOrigin origin = {};
  bool orphaned = false;           // forked inside a hook, whose tables only the parent has
  bool is_filtered_child = false;  // a child of vfork of this thread has stopped system calls

  // Whether the next sample comes after this block; counts its bytes.
  bool count_down(std::size_t bytes) noexcept {
    if (bytes < remaining) [[likely]] {
      remaining -= bytes;
      return true;
    }
    return false;
  }
  // The next sample comes after so many bytes.
  void set_gap(std::uint64_t bytes) noexcept {
    remaining = bytes < kMaxCountdownBytes ? bytes : kMaxCountdownBytes;
    remaining_later = bytes - remaining;
  }
};

inline constinit thread_local ThreadState t_thread;

// Whether the hook at stack address `frame` was left by longjmp, now that another one is entered
// further out, at `here`: on one stack the second cannot be inside the first. False where that is
// not certain: the alternate stack of a signal handler may lie above the stack that it interrupted.
[[gnu::cold]] bool was_left_by_longjmp(std::uint64_t frame, std::uint64_t here) noexcept;

// Marks the thread as inside a hook and keeps errno as the application sees it. False: the thread
// was inside one already (a signal handler that allocates, say); the call is then not recorded, and
// the state that the outer hook left in the thread stays.
class HookScope {
 public:
  HookScope() noexcept
      : saved_errno_(errno), here_(reinterpret_cast<std::uint64_t>(__builtin_frame_address(0))) {
    is_outermost_ = t_thread.hook_frame == 0 || (t_thread.hook_frame < here_ &&
                                                 was_left_by_longjmp(t_thread.hook_frame, here_));
    if (is_outermost_) {
      t_thread.hook_frame = here_;
    }
  }
  ~HookScope() {
    if (is_outermost_) {
      t_thread.hook_frame = 0;
      t_thread.orphaned = false;
    }
    errno = saved_errno_;
  }
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;
  explicit operator bool() const noexcept { return is_outermost_; }
  // The caller found that no hook is among its callers: the one that seems to run was left.
  void make_outermost() noexcept {
    is_outermost_ = true;
    t_thread.hook_frame = here_;
  }

 private:
  int saved_errno_;
  std::uint64_t here_;
  bool is_outermost_;
};

}  // namespace tidemark::tracer
