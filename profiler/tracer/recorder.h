// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/tracer/block_filter.h"
#include "profiler/tracer/bounded_lock.h"
#include "profiler/tracer/live_table.h"
#include "profiler/tracer/map_recorder.h"
#include "profiler/tracer/site_recorder.h"
#include "profiler/tracer/unwind/stack_trace.h"
#include "profiler/wire/trace_layout.h"
#include "profiler/wire/trace_request.h"

namespace tidemark::tracer {

// Records the blocks that the hooks report in the trace file of this process. All functions may be
// called from any thread in any state; they keep errno, never block and never fail: what cannot be
// recorded is counted as lost. Nothing is recorded before open() and after abandon().
//
// Trivially constructed and all zero, so that it takes no room in the file of the library: members
// that need the store are bound to it in open().
class Recorder {
 public:
  // Creates the file and starts. False: nothing is recorded, store().error() says why.
  bool open(const wire::TraceRequest& request, bool forked) noexcept;
  // In a forked child: forgets the tables of the parent. `unmap`: unless the kernel did it.
  void abandon(bool unmap) noexcept;
  // Before open(): blocks of the heap are not recorded, because most of them do not come here.
  void exclude_heap() noexcept {
    without_heap_ = true;
    reason_ = "the program has its own allocator: its heap is not recorded";
  }
  // Before open(): what else is not as it should be, for the header. Must stay where it is.
  void set_reason(const char* reason) noexcept { reason_ = without_heap_ ? reason_ : reason; }
  // Puts the mode that this process is in now into a request for a child.
  void copy_mode_to(wire::TraceRequest& request) const noexcept;
  // Makes room ahead, then makes no system call until resume_system_calls().
  void stop_system_calls() noexcept;
  void resume_system_calls() noexcept;

  // A block of the heap was allocated.
  void record_alloc(const void* block, std::size_t bytes, const Registers& caller) noexcept;
  // It is about to be freed. First here: after the free another thread may own the address.
  void record_free(const void* block) noexcept;

  // A block that was taken out of the tables. `file`: a signal handler may fork while the block is
  // resized; the child has tables of its own, in which this record means nothing.
  struct TakenBlock {
    wire::LiveRecord record = {};
    std::uint32_t file = 0;
  };
  // A block is about to be resized: takes it out. False: it is not recorded. True: to be followed
  // by exactly one of finish_realloc(), undo_realloc() and record_free_by_realloc().
  bool begin_realloc(const void* block, TakenBlock& old) noexcept;
  void undo_realloc(const void* block, const TakenBlock& old) noexcept;
  // `old`: nullptr when begin_realloc() said no. The new block keeps the epoch of the old one.
  void finish_realloc(const void* block, std::size_t bytes, const TakenBlock* old,
                      const Registers& caller) noexcept;
  void record_free_by_realloc(const TakenBlock& old) noexcept;

  // CUDA memory, on the device or pinned: rare and large, so each block is recorded, in any mode
  // but dormant. The free is to be recorded before it is made.
  void record_cuda_alloc(const void* block, std::size_t bytes, wire::SiteKind kind,
                         const Registers& caller) noexcept;
  void record_cuda_free(const void* block) noexcept;

  // A thread is about to be started here. Without Python nothing is recorded.
  ThreadOrigin record_thread_start(const Registers& caller) noexcept;

  BlockFilter& filter() noexcept { return filter_; }
  SiteRecorder& sites() noexcept { return sites_; }
  MapRecorder& maps() noexcept { return maps_; }
  TraceStore& store() noexcept { return sites_.store(); }
  ModuleTable& modules() noexcept { return sites_.modules(); }

 private:
  bool is_picked(std::size_t bytes, std::uint8_t& period) noexcept;
  void leave_exact() noexcept;
  void record_block(const void* block, std::size_t bytes, const Registers& caller,
                    const TakenBlock* old) noexcept;
  bool insert(const void* block, const wire::LiveRecord& record) noexcept;
  SiteCount count_of(const wire::LiveRecord& record) const noexcept {
    return tracer::count_of(*sites_.store().header(), record);
  }

  // What every hook reads is small and comes first, so that it shares cache lines.
  bool without_heap_ = false;
  BoundedLock leave_exact_lock_;
  LiveTable live_;
  SiteRecorder sites_;
  BlockFilter filter_;
  MapRecorder maps_;
  const char* reason_ = nullptr;
};

// Stops and resumes the system calls of the tracer for a child of vfork that filters its own: it
// runs in our memory until it becomes another program. Makes no room ahead.
void stop_system_calls_for_child() noexcept;
void resume_system_calls_for_child() noexcept;

}  // namespace tidemark::tracer
