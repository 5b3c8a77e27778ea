// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/tracer/block_filter.h"
#include "profiler/tracer/bounded_lock.h"
#include "profiler/tracer/live_table.h"
#include "profiler/tracer/module_table.h"
#include "profiler/tracer/range_table.h"
#include "profiler/tracer/scratch_pool.h"
#include "profiler/tracer/site_table.h"
#include "profiler/tracer/thread_state.h"
#include "profiler/tracer/trace_store.h"
#include "profiler/tracer/unwind/stack_bounds.h"
#include "profiler/tracer/unwind/stack_cache.h"
#include "profiler/tracer/unwind/stack_trace.h"
#include "profiler/wire/trace_layout.h"
#include "profiler/wire/trace_request.h"

namespace tidemark::tracer {

// What the hooks tell, and what becomes of it in the shared file. All functions may be called from
// any thread in any state; they keep errno, never block and never fail: what cannot be recorded is
// counted as lost. Nothing is recorded before open() and after close().
class Recorder {
 public:
  // Makes the file and begins. False: nothing is recorded, store().error() says why.
  bool open(const wire::TraceRequest& request, bool forked) noexcept;
  // In a forked child: forgets the tables of the parent. `unmap` unless the kernel did it.
  void abandon(bool unmap) noexcept;
  void set_stage(wire::Stage stage) noexcept;
  // Before open(): blocks of the heap are not recorded, because most of them are not seen.
  void leave_heap_out() noexcept { without_heap_ = true; }
  // Before open(): the callers of those who allocate are not found.
  void leave_callers_out() noexcept { without_callers_ = true; }
  // What is asked of a child: the request, in the mode that this process is in now.
  void tell_mode(wire::TraceRequest& request) const noexcept;
  // Makes room ahead, then makes no system call any more; until it may again.
  void stop_system_calls() noexcept;
  void resume_system_calls() noexcept;
  // As above, for a child of vfork, which soon leaves our memory: nothing is made ahead.
  static void stop_system_calls_for_child() noexcept;
  static void resume_system_calls_for_child() noexcept;

  // A block of the heap is there.
  void allocated(const void* block, std::size_t bytes, const Registers& caller) noexcept;
  // It is about to be released.
  void released(const void* block) noexcept;

  // A block that was taken out, and the file whose tables its numbers are of: a handler may fork
  // while the block is resized, and the child goes on with tables of its own.
  struct TakenBlock {
    wire::LiveRecord record = {};
    std::uint32_t file = 0;
  };
  // A block is about to be resized: takes it out, to be followed by exactly one of resized() and
  // not_resized(). False: it is not recorded.
  bool begin_resize(const void* block, TakenBlock& old) noexcept;
  void not_resized(const void* block, const TakenBlock& old) noexcept;
  // `old`: nullptr when begin_resize() said no. The new block keeps the birth of the old one.
  void resized(const void* block, std::size_t bytes, const TakenBlock* old,
               const Registers& caller) noexcept;
  // The old one was released instead.
  void released_by_resize(const TakenBlock& old) noexcept;

  // A block of a device or one that is pinned: rare and large, each is recorded in any mode but
  // dormant. About to be given back.
  void acquired(const void* block, std::size_t bytes, wire::SiteKind kind,
                const Registers& caller) noexcept;
  void gave_back(const void* block) noexcept;

  void mapped(const void* begin, std::size_t bytes, wire::SiteKind kind,
              const Registers& caller) noexcept;
  void unmapped(const void* begin, std::size_t bytes) noexcept;

  // What mremap is about to move. Its mapping may lie over several that were made one by one.
  struct MovedRanges {
    static constexpr std::size_t kMost = 16;
    std::size_t count = 0;
    RangePiece piece[kMost];
    std::uint32_t file = 0;  // as with a block
    bool stay = false;       // it makes a second mapping of them
  };
  // Takes the old range out, before the call: another thread may get it before that returns. To be
  // followed by exactly one of remapped() and not_remapped().
  void begin_remap(const void* from, std::size_t old_bytes, bool stays,
                   MovedRanges& moved) noexcept;
  void not_remapped(const MovedRanges& moved) noexcept;
  // The new mapping keeps kind and birth.
  void remapped(const MovedRanges& moved, const void* to, std::size_t bytes,
                const Registers& caller) noexcept;

  // Whether no process that this one was forked by had a file.
  bool is_first_file() const noexcept { return file_ == 0; }

  const BlockFilter& filter() const noexcept { return filter_; }
  BlockFilter& filter() noexcept { return filter_; }
  TraceStore& store() noexcept { return store_; }
  ModuleTable& modules() noexcept { return modules_; }

 private:
  struct Weight {
    std::uint64_t bytes;
    std::uint64_t block_units;
  };

  wire::Mode mode() const noexcept {
    return static_cast<wire::Mode>(store_.header()->control.mode.load(std::memory_order_relaxed));
  }
  void leave_exact() noexcept;
  bool picks(std::size_t bytes, std::uint8_t& period) noexcept;
  bool period_index(std::uint64_t period_bytes, std::uint8_t& index) noexcept;
  Weight weight_of(const wire::LiveRecord& record) const noexcept;
  bool may_record(HookScope& scope, const Registers& caller) noexcept;
  std::uint32_t lane() noexcept;
  std::uint32_t site_here(wire::SiteKind kind, const Registers& caller) noexcept;
  struct ToKeep {  // in the memo
    std::uint64_t context = 0;
    StackBounds bounds;
    bool wanted = false;
  };
  std::uint32_t walk_to_site(wire::SiteKind kind, std::uint32_t lane, const Registers& caller,
                             const ToKeep& keep) noexcept;
  void record(const void* block, std::size_t bytes, const Registers& caller,
              const TakenBlock* old) noexcept;
  bool list(const void* block, const wire::LiveRecord& made) noexcept;
  void count_alloc(std::uint32_t site, Weight weight) noexcept;
  void count_free(std::uint32_t site, Weight weight) noexcept;
  void lost(std::atomic<std::uint64_t>& counter) noexcept {
    counter.fetch_add(1, std::memory_order_relaxed);
  }
  wire::Losses& losses() noexcept { return store_.header()->losses; }
  std::uint32_t epoch() const noexcept;
  static void range_gone(void* recorder, const RangePiece& piece) noexcept;

  // The small ones first, and in each of them what is small: what every hook reads lies together.
  bool libunwind_ = false;
  bool without_heap_ = false;
  bool without_callers_ = false;
  std::uint32_t file_ = 0;  // how many there were before it: those of the parents
  std::atomic<std::uint32_t> next_lane_ = 0;
  BoundedLock leaving_;
  LiveTable live_;
  SiteTable sites_;
  TraceStore store_;
  ModuleTable modules_;
  StackCache memo_;
  BlockFilter filter_;
  RangeTable ranges_;
  ScratchPool scratch_;
};

}  // namespace tidemark::tracer
