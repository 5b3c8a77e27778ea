// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/tracer/block_sampling.h"
#include "profiler/tracer/module_table.h"
#include "profiler/tracer/python/code_table.h"
#include "profiler/tracer/python/interpreter.h"
#include "profiler/tracer/scratch_pool.h"
#include "profiler/tracer/site_table.h"
#include "profiler/tracer/thread_state.h"
#include "profiler/tracer/trace_store.h"
#include "profiler/tracer/tracer_state.h"
#include "profiler/tracer/unwind/stack_bounds.h"
#include "profiler/tracer/unwind/stack_cache.h"
#include "profiler/tracer/unwind/stack_trace.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

// The trace file of this process and the sites in it: finds the site of a call stack and counts on
// it. Shared by what records blocks and what records mappings. Any thread, in hooks; never blocks.
class SiteRecorder {
 public:
  // Before the file is created. `libunwind`: stacks are walked by it.
  void bind(bool libunwind) noexcept;
  // In a forked child: forgets the tables of the parent. `unmap`: unless the kernel did it.
  void abandon(bool unmap) noexcept;
  // Makes room for a time when there is no memory.
  void grow_ahead() noexcept;

  // Whether the tables may be used and this is no call from inside a hook of this thread. A hook
  // that was left by longjmp looks like one that runs: then the callers are looked at.
  bool may_record(HookScope& scope, const Registers& caller) noexcept {
    return can_record() && (scope || resume_after_longjmp(scope, caller));
  }
  // Counts what the calling stack allocates, and returns its site. HashIndex::kNone: no room,
  // counted as lost. The site stays its own until as much is counted as freed. So the block is put
  // into the tables after this, and taken out of them before count_free().
  std::uint32_t count_alloc(wire::SiteKind kind, const Registers& caller, SiteCount count) noexcept;
  // A thread is about to be started. Where the calling one runs no Python either, the new one comes
  // from where that did.
  ThreadOrigin count_thread_start(const Registers& caller) noexcept;
  // nullptr: there is no such site in this file.
  wire::Site* site(std::uint32_t number) const noexcept { return sites_.site(number); }
  // The block found no room in the tables after all.
  void undo_alloc(std::uint32_t number, SiteCount count) noexcept {
    if (wire::Site* const site = sites_.site(number); site != nullptr) {
      site->alloc_bytes.fetch_sub(count.bytes, std::memory_order_relaxed);
      site->alloc_block_units.fetch_sub(count.block_units, std::memory_order_release);
    }
  }
  void count_free(std::uint32_t number, SiteCount count, bool is_temporary = false) noexcept {
    if (wire::Site* const site = sites_.site(number); site != nullptr) {
      if (is_temporary) {
        site->temporary_block_units.fetch_add(count.block_units, std::memory_order_relaxed);
      }
      site->free_bytes.fetch_add(count.bytes, std::memory_order_relaxed);
      // Last: the site may be another's from here on.
      site->free_block_units.fetch_add(count.block_units, std::memory_order_release);
    }
  }
  void count_loss(std::atomic<std::uint64_t> wire::Losses::*kind) noexcept {
    (store_.header()->losses.*kind).fetch_add(1, std::memory_order_relaxed);
  }

  wire::Mode mode() const noexcept {
    return static_cast<wire::Mode>(store_.header()->control.mode.load(std::memory_order_relaxed));
  }
  std::uint32_t epoch() const noexcept {
    return store_.header()->control.epoch.load(std::memory_order_relaxed);
  }
  // How many trace files there were before: those of the processes that this one was forked from.
  std::uint32_t file() const noexcept { return file_; }
  TraceStore& store() noexcept { return store_; }
  const TraceStore& store() const noexcept { return store_; }
  ModuleTable& modules() noexcept { return modules_; }

 private:
  struct CacheKey {
    std::uint64_t context = 0;
    StackBounds bounds;
    bool is_wanted = false;  // the stack is added to the cache
  };

  bool resume_after_longjmp(HookScope& scope, const Registers& caller) noexcept;
  std::uint32_t shard() noexcept;
  void add_to_cache(const Registers& caller, const CacheKey& key, const StackTrace& trace,
                    SiteRef site) noexcept;
  std::uint32_t walk_to_site(SiteTable::Owner owner, const Registers& caller, const CacheKey& key,
                             SiteCount count) noexcept;
  StackView read_stack(Scratch& scratch, const Registers& caller, StackBounds bounds) noexcept;
  std::uint32_t origin_of_thread() const noexcept;
  void update_header() noexcept;

  // What every hook reads is small and comes first, so that it shares cache lines.
  bool libunwind_ = false;
  std::uint32_t file_ = 0;
  std::atomic<std::uint32_t> next_shard_ = 0;
  std::atomic<std::uint32_t> uncached_ = 0;  // stacks that came again while there was no cache
  SiteTable sites_;
  TraceStore store_;
  ModuleTable modules_;
  PythonInterpreter python_;
  PythonCodeTable codes_;
  StackCache cache_;
  ScratchPool scratch_;
};

}  // namespace tidemark::tracer
