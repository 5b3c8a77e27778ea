// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "profiler/tracer/recorder.h"
#include "profiler/tracer/sys.h"
#include "profiler/tracer/thread_state.h"
#include "profiler/tracer/tracer_state.h"
#include "profiler/tracer/unwind/unwind.h"
#include "tests/support/temp_tree.h"

namespace tidemark::tracer {

inline const void* block_at(std::uintptr_t number) {
  return reinterpret_cast<const void*>(0x10000 + number * 64);
}

inline constexpr std::size_t kPage = 4096;
inline const void* page_at(std::uintptr_t number) {
  return reinterpret_cast<const void*>(0x7000000 + number * kPage);
}

struct Sums {
  double alloc_bytes = 0.0;
  double alloc_blocks = 0.0;
  double live_bytes = 0.0;
  double live_blocks = 0.0;
  double temporary_blocks = 0.0;
  std::uint64_t sites = 0;
};

// A recorder with a file in a private folder, and the hooks before it.
class RecorderTest : public testing::Test {
 protected:
  void begin(wire::Mode mode, std::uint64_t sample_every = 4096,
             std::uint64_t most_file_bytes = 0) {
    start_unwinder();
    recorder_->modules().set_up();
    t_thread = {};
    wire::TraceRequest request;
    request.mode = mode;
    request.sample_every_bytes = sample_every;
    request.most_file_bytes = most_file_bytes;
    request.directory = folder_.path().c_str();
    ASSERT_TRUE(recorder_->open(request, false));
    g_fork_page.on.store(1);
  }
  void restart_in_child(wire::Mode mode) {
    g_fork_page.on.store(0);
    recorder_->abandon(true);
    begin(mode);
  }
  void TearDown() override {
    g_fork_page.on.store(0);
    recorder_->abandon(true);
  }

  // As heap_hooks.cpp does it.
  [[gnu::noinline]] void allocate(const void* block, std::size_t bytes) {
    if (bytes < t_thread.remaining) {
      t_thread.remaining -= bytes;
      return;
    }
    recorder_->record_alloc(block, bytes, capture_registers());
  }
  void release(const void* block) {
    if (recorder_->filter().may_hold(block)) {
      recorder_->record_free(block);
    }
  }
  enum class Realloc { kMoves, kFails, kFrees };
  [[gnu::noinline]] void resize(const void* block, const void* to, std::size_t bytes,
                                Realloc what) {
    if (!recorder_->filter().may_hold(block) && bytes < t_thread.remaining) {
      t_thread.remaining -= bytes;
      return;
    }
    Recorder::TakenBlock old;
    const bool known = recorder_->filter().may_hold(block) && recorder_->begin_realloc(block, old);
    if (what == Realloc::kMoves) {
      recorder_->finish_realloc(to, bytes, known ? &old : nullptr, capture_registers());
    } else if (known && what == Realloc::kFails) {
      recorder_->undo_realloc(block, old);
    } else if (known) {
      recorder_->record_free_by_realloc(old);
    }
  }

  // As map_hooks.cpp does it.
  [[gnu::noinline]] void move_mapping(const void* from, std::size_t old_bytes, const void* to,
                                      std::size_t bytes) {
    MapRecorder::MovedRanges moved;
    recorder_->maps().begin_remap(from, old_bytes, false, moved);
    recorder_->maps().finish_remap(moved, to, bytes, capture_registers());
  }

  Sums sums(wire::SiteKind kind = wire::SiteKind::kHeap) {
    Sums all;
    const auto used = header().table[static_cast<std::size_t>(wire::Table::kSites)].used.load();
    for (std::uint64_t i = 0; i < used; ++i) {
      const auto* const site = recorder_->store().item<wire::Site>(wire::Table::kSites, i);
      if (site == nullptr || site->ready == 0 || site->kind != kind) {
        continue;
      }
      constexpr double kUnit = wire::kBlockUnit;
      ++all.sites;
      all.alloc_bytes += static_cast<double>(site->alloc_bytes);
      all.alloc_blocks += static_cast<double>(site->alloc_block_units) / kUnit;
      all.live_bytes += static_cast<double>(site->alloc_bytes - site->free_bytes);
      all.live_blocks +=
          static_cast<double>(site->alloc_block_units - site->free_block_units) / kUnit;
      all.temporary_blocks += static_cast<double>(site->temporary_block_units) / kUnit;
    }
    return all;
  }
  void set_mode(wire::Mode mode) { header().control.mode.store(static_cast<std::uint32_t>(mode)); }
  wire::Header& header() { return *recorder_->store().header(); }
  wire::Losses& losses() { return header().losses; }
  Recorder& recorder() { return *recorder_; }

 private:
  tests::TempTree folder_;
  std::unique_ptr<Recorder> recorder_ = std::make_unique<Recorder>();
};

}  // namespace tidemark::tracer
