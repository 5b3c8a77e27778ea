// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/recorder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <memory>
#include <thread>

#include "profiler/tracer/life.h"
#include "profiler/tracer/sys.h"
#include "profiler/tracer/thread_state.h"
#include "profiler/tracer/unwind/unwind.h"
#include "tests/support/temp_tree.h"
#include "tests/unit/tracer/no_alloc_scope.h"

namespace tidemark::tracer {
namespace {

using wire::Mode;
using wire::SiteKind;

const void* block_at(std::uintptr_t number) {
  return reinterpret_cast<const void*>(0x10000 + number * 64);
}

constexpr std::size_t kPage = 4096;
const void* page_at(std::uintptr_t number) {
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
  void begin(Mode mode, std::uint64_t sample_every = 4096, std::uint64_t most_file_bytes = 0) {
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
    recorder_->allocated(block, bytes, capture_registers());
  }
  void release(const void* block) {
    if (recorder_->filter().may_hold(block)) {
      recorder_->released(block);
    }
  }
  enum class Realloc { kMoves, kFails, kFrees };
  [[gnu::noinline]] void resize(const void* block, const void* to, std::size_t bytes,
                                Realloc what) {
    if (!recorder_->filter().may_hold(block) && bytes < t_thread.remaining) {
      t_thread.remaining -= bytes;
      return;
    }
    wire::LiveRecord old = {};
    const bool known = recorder_->filter().may_hold(block) && recorder_->begin_resize(block, old);
    if (what == Realloc::kMoves) {
      recorder_->resized(to, bytes, known ? &old : nullptr, capture_registers());
    } else if (known && what == Realloc::kFails) {
      recorder_->not_resized(block, old);
    } else if (known) {
      recorder_->released_by_resize(old);
    }
  }

  // As map_hooks.cpp does it.
  [[gnu::noinline]] void move_mapping(const void* from, std::size_t old_bytes, const void* to,
                                      std::size_t bytes) {
    Recorder::MovedRanges moved;
    recorder_->begin_remap(from, old_bytes, false, moved);
    recorder_->remapped(moved, to, bytes, capture_registers());
  }

  Sums sums(SiteKind kind = SiteKind::kHeap) {
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
  void set_mode(Mode mode) { header().control.mode.store(static_cast<std::uint32_t>(mode)); }
  wire::Header& header() { return *recorder_->store().header(); }
  wire::Losses& losses() { return header().losses; }
  Recorder& recorder() { return *recorder_; }

 private:
  tests::TempTree folder_;
  std::unique_ptr<Recorder> recorder_ = std::make_unique<Recorder>();
};

TEST_F(RecorderTest, CountsWhatLives) {
  begin(Mode::kExact);
  for (std::uintptr_t i = 0; i < 100; ++i) {
    allocate(block_at(i), 10 + i);
  }
  for (std::uintptr_t i = 0; i < 100; i += 2) {
    release(block_at(i));
  }

  EXPECT_EQ(sums().alloc_blocks, 100);
  EXPECT_EQ(sums().alloc_bytes, 100 * 10 + 99 * 100 / 2);
  EXPECT_EQ(sums().live_blocks, 50);
  EXPECT_EQ(sums().live_bytes, 50 * 10 + 50 * 50);
  EXPECT_EQ(losses().unknown_frees, 0U);
}

TEST_F(RecorderTest, OneLineOfCodeIsOneSite) {
  begin(Mode::kExact);
  for (std::uintptr_t i = 0; i < 100; ++i) {
    allocate(block_at(i), 16);
  }
  EXPECT_EQ(sums().sites, 1U);

  allocate(block_at(100), 16);
  EXPECT_EQ(sums().sites, 2U);
}

TEST_F(RecorderTest, ABlockFreedBeforeTheNextIsTemporary) {
  begin(Mode::kExact);
  allocate(block_at(1), 16);
  release(block_at(1));
  allocate(block_at(2), 16);
  allocate(block_at(3), 16);
  release(block_at(2));
  release(block_at(3));

  EXPECT_EQ(sums().temporary_blocks, 2);  // 1 and 3
}

TEST_F(RecorderTest, AFreeOfAnUnknownBlockIsCounted) {
  begin(Mode::kExact);
  allocate(block_at(1), 16);
  release(block_at(2));
  release(block_at(1));
  release(block_at(1));

  EXPECT_EQ(losses().unknown_frees, 2U);
  EXPECT_EQ(sums().live_bytes, 0);
}

TEST_F(RecorderTest, AnAddressThatIsHandedOutAgainReplacesTheOldBlock) {
  begin(Mode::kExact);
  allocate(block_at(1), 100);
  allocate(block_at(1), 30);

  EXPECT_EQ(sums().live_bytes, 30);
  EXPECT_EQ(losses().missed_frees, 1U);
}

TEST_F(RecorderTest, AResizedBlockKeepsItsBirth) {
  begin(Mode::kExact);
  header().control.epoch.store(5);
  allocate(block_at(1), 100);
  header().control.epoch.store(9);
  resize(block_at(1), block_at(2), 300, Realloc::kMoves);

  EXPECT_EQ(sums().live_bytes, 300);
  EXPECT_EQ(sums().live_blocks, 1);
  wire::LiveRecord found = {};
  ASSERT_TRUE(recorder().begin_resize(block_at(2), found));
  EXPECT_EQ(found.epoch, 5U);
  EXPECT_EQ(wire::unpack_size(found.size_and_period), 300U);
  recorder().released_by_resize(found);
  EXPECT_EQ(sums().live_bytes, 0);
}

// One that was not a sample has no birth on the books: it is born when it becomes one.
TEST_F(RecorderTest, AResizedSampleKeepsItsBirthAndAnotherBlockIsBornAnew) {
  begin(Mode::kSampled, 1);
  header().control.epoch.store(5);
  allocate(block_at(1), 1000);  // picked for certain, as are the others
  header().control.epoch.store(9);
  resize(block_at(1), block_at(2), 3000, Realloc::kMoves);
  resize(block_at(3), block_at(4), 3000, Realloc::kMoves);

  wire::LiveRecord kept = {};
  wire::LiveRecord fresh = {};
  ASSERT_TRUE(recorder().begin_resize(block_at(2), kept));
  ASSERT_TRUE(recorder().begin_resize(block_at(4), fresh));
  EXPECT_EQ(kept.epoch, 5U);
  EXPECT_EQ(fresh.epoch, 9U);
}

TEST_F(RecorderTest, AFailedResizeRestoresTheBlock) {
  begin(Mode::kExact);
  header().control.epoch.store(3);
  allocate(block_at(1), 100);
  resize(block_at(1), nullptr, 1U << 30U, Realloc::kFails);

  EXPECT_EQ(sums().live_bytes, 100);
  EXPECT_EQ(sums().live_blocks, 1);
  release(block_at(1));
  EXPECT_EQ(sums().live_bytes, 0);
  EXPECT_EQ(losses().unknown_frees, 0U);
}

TEST_F(RecorderTest, AResizeToNothingIsARelease) {
  begin(Mode::kExact);
  allocate(block_at(1), 100);
  resize(block_at(1), nullptr, 0, Realloc::kFrees);

  EXPECT_EQ(sums().live_bytes, 0);
  EXPECT_EQ(sums().live_blocks, 0);
}

TEST_F(RecorderTest, KeepsErrno) {
  begin(Mode::kExact);
  errno = EDOM;
  allocate(block_at(1), 10);
  release(block_at(1));
  release(block_at(2));

  EXPECT_EQ(errno, EDOM);
}

TEST_F(RecorderTest, DoesNotAllocate) {
  if (!tests::NoAllocScope::works()) {
    GTEST_SKIP() << "malloc is the sanitizer's";
  }
  begin(Mode::kExact);
  std::size_t calls = 0;
  {
    const tests::NoAllocScope scope;
    for (std::uintptr_t i = 0; i < 3000; ++i) {
      allocate(block_at(i), 16);
      resize(block_at(i), block_at(i + 5000), 32, Realloc::kMoves);
    }
    recorder().mapped(block_at(64), 4096, SiteKind::kAnonymousMap, capture_registers());
    recorder().unmapped(block_at(64), 4096);
    calls = scope.calls();
  }

  EXPECT_EQ(calls, 0U);
  EXPECT_EQ(sums().live_blocks, 3000);
}

TEST_F(RecorderTest, IsWokenFromDormantToSampledToExactAndBack) {
  begin(Mode::kDormant);
  std::uintptr_t next = 0;
  const auto allocate_mebibytes = [&](int count) {
    for (int i = 0; i < count * 1024; ++i) {
      allocate(block_at(next++), 1024);
    }
  };
  allocate_mebibytes(3);
  EXPECT_EQ(sums().alloc_blocks, 0);

  set_mode(Mode::kSampled);
  allocate_mebibytes(2);  // one of them until it looks
  const double sampled = sums().alloc_blocks;
  EXPECT_GT(sampled, 500);
  EXPECT_LT(sampled, 2500);
  EXPECT_EQ(header().period_count, 2U);
  EXPECT_EQ(header().periods[1], 4096U);

  set_mode(Mode::kExact);
  allocate_mebibytes(1);  // at the latest with the next sample
  const double before = sums().alloc_blocks;
  allocate_mebibytes(1);
  EXPECT_EQ(sums().alloc_blocks - before, 1024);

  set_mode(Mode::kDormant);
  const double last = sums().alloc_blocks;
  allocate_mebibytes(1);
  EXPECT_EQ(sums().alloc_blocks, last);
  for (std::uintptr_t i = 0; i < next; ++i) {  // what was recorded is still released
    release(block_at(i));
  }
  EXPECT_EQ(sums().live_bytes, 0);
  EXPECT_EQ(sums().live_blocks, 0);
}

TEST_F(RecorderTest, AnotherPeriodIsTakenUp) {
  begin(Mode::kSampled, 4096);
  for (std::uintptr_t i = 0; i < 1000; ++i) {
    allocate(block_at(i), 1000);
  }
  header().control.sample_every_bytes.store(1000);
  for (std::uintptr_t i = 1000; i < 3000; ++i) {
    allocate(block_at(i), 1000);
  }

  EXPECT_EQ(header().periods[1], 4096U);
  EXPECT_EQ(header().periods[2], 1000U);
  EXPECT_NEAR(sums().alloc_bytes, 3e6, 5 * std::sqrt(1000 * 1e6 * 3.6 + 2000 * 1e6 * 0.6));
}

TEST_F(RecorderTest, MorePeriodsThanItCanTellApartAreLosses) {
  begin(Mode::kSampled, 1);
  for (std::uintptr_t i = 0; i < 100; ++i) {
    header().control.sample_every_bytes.store(1 + i);
    t_thread.remaining = 0;
    allocate(block_at(i), 100'000);
  }

  EXPECT_EQ(sums().alloc_blocks, static_cast<double>(wire::kMostPeriods - 1));
  EXPECT_EQ(losses().sites_full, 100 - (wire::kMostPeriods - 1));
}

// A block that grows step by step is drawn anew each time: the estimate does not grow with it.
TEST_F(RecorderTest, ResizedBlocksAreSampledWithoutBias) {
  begin(Mode::kSampled, 4096);
  constexpr int kBlocks = 4000;
  for (std::uintptr_t i = 0; i < kBlocks; ++i) {
    allocate(block_at(i), 100);
    for (std::size_t bytes = 110; bytes <= 300; bytes += 10) {
      resize(block_at(i), block_at(i), bytes, Realloc::kMoves);
    }
  }

  const double deviation = 300 * std::sqrt(kBlocks * 13.2);  // weight 14.2
  EXPECT_NEAR(sums().live_bytes, 300.0 * kBlocks, 5 * deviation);
}

// Each short thread draws numbers of its own, although all have the same place.
TEST_F(RecorderTest, ShortThreadsAreSampledWithoutBias) {
  begin(Mode::kSampled, 4096);
  constexpr int kThreads = 1500;
  for (std::uintptr_t i = 0; i < kThreads; ++i) {
    std::thread([&] { allocate(block_at(i), 1000); }).join();
  }

  const double deviation = 1000 * std::sqrt(kThreads * 3.62);
  EXPECT_NEAR(sums().live_bytes, 1000.0 * kThreads, 5 * deviation);
}

TEST_F(RecorderTest, WhatHasNoRoomIsLostAndCounted) {
  begin(Mode::kExact, 0, 700U << 10U);
  for (std::uintptr_t i = 0; i < 100'000; ++i) {
    allocate(block_at(i), 16);
  }

  EXPECT_GT(losses().live_full, 0U);
  EXPECT_EQ(sums().live_blocks + static_cast<double>(losses().live_full), 100'000);
  for (std::uintptr_t i = 0; i < 100'000; ++i) {
    release(block_at(i));
  }
  EXPECT_EQ(sums().live_blocks, 0);
  EXPECT_EQ(losses().unknown_frees, losses().live_full);
}

TEST_F(RecorderTest, ASilentRecorderHasRoomAheadAndLosesTheRest) {
  begin(Mode::kExact);
  recorder().fall_silent();
  EXPECT_TRUE(sys::g_silent.load());
  const auto levels = recorder().store().extents(wire::Table::kLive);
  for (std::uintptr_t i = 0; i < 400'000; ++i) {
    allocate(block_at(i), 16);
  }

  EXPECT_EQ(recorder().store().extents(wire::Table::kLive), levels);
  EXPECT_GT(sums().live_blocks, 50'000);
  EXPECT_EQ(sums().live_blocks + static_cast<double>(losses().live_full), 400'000);
  recorder().speak_again();
  EXPECT_FALSE(sys::g_silent.load());
}

TEST_F(RecorderTest, CountsMappingsByKind) {
  begin(Mode::kSampled);
  recorder().mapped(page_at(0), 10 * kPage, SiteKind::kAnonymousMap, capture_registers());
  recorder().mapped(page_at(20), 4 * kPage, SiteKind::kSharedMap, capture_registers());
  recorder().unmapped(page_at(2), 3 * kPage);

  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_bytes, 7 * kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 1);
  EXPECT_EQ(sums(SiteKind::kSharedMap).live_bytes, 4 * kPage);
}

TEST_F(RecorderTest, AMappingThatWasCutIsOneBlockUntilItsLastPartIsGone) {
  begin(Mode::kExact);
  recorder().mapped(page_at(0), 9 * kPage, SiteKind::kAnonymousMap, capture_registers());
  recorder().unmapped(page_at(4), kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 1);
  recorder().unmapped(page_at(0), 4 * kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 1);
  recorder().unmapped(page_at(5), 4 * kPage);

  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 0);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_bytes, 0);
}

TEST_F(RecorderTest, AMovedMappingKeepsKindAndBirth) {
  begin(Mode::kExact);
  header().control.epoch.store(5);
  recorder().mapped(page_at(0), 2 * kPage, SiteKind::kSharedMap, capture_registers());
  header().control.epoch.store(9);
  move_mapping(page_at(0), 2 * kPage, page_at(64), 8 * kPage);

  EXPECT_EQ(sums(SiteKind::kSharedMap).live_bytes, 8 * kPage);
  EXPECT_EQ(sums(SiteKind::kSharedMap).live_blocks, 1);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).alloc_blocks, 0);
  Recorder::MovedRanges found;
  recorder().begin_remap(page_at(64), 8 * kPage, true, found);
  ASSERT_EQ(found.count, 1U);
  EXPECT_EQ(found.piece[0].epoch, 5U);
}

TEST_F(RecorderTest, APlaceThatAnotherThreadGetsWhileItsMappingMovesIsThatThreads) {
  begin(Mode::kExact);
  recorder().mapped(page_at(0), 4 * kPage, SiteKind::kAnonymousMap, capture_registers());
  Recorder::MovedRanges moved;
  recorder().begin_remap(page_at(0), 4 * kPage, false, moved);
  std::thread([&] {  // after the kernel has moved it, before mremap has returned
    recorder().mapped(page_at(0), 4 * kPage, SiteKind::kSharedMap, capture_registers());
  })
      .join();
  recorder().remapped(moved, page_at(64), 8 * kPage, capture_registers());

  EXPECT_EQ(sums(SiteKind::kSharedMap).live_bytes, 4 * kPage);
  EXPECT_EQ(sums(SiteKind::kSharedMap).live_blocks, 1);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_bytes, 8 * kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 1);
}

TEST_F(RecorderTest, AMappingThatCouldNotBeMovedIsAsItWas) {
  begin(Mode::kExact);
  recorder().mapped(page_at(0), 4 * kPage, SiteKind::kAnonymousMap, capture_registers());
  recorder().mapped(page_at(4), 4 * kPage, SiteKind::kAnonymousMap, capture_registers());
  Recorder::MovedRanges moved;
  recorder().begin_remap(page_at(2), 4 * kPage, false, moved);
  EXPECT_EQ(moved.count, 2U);
  recorder().not_remapped(moved);

  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_bytes, 8 * kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 2);
  recorder().unmapped(page_at(0), 8 * kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_bytes, 0);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 0);
}

TEST_F(RecorderTest, ASecondMappingOfTheSameMemoryLeavesTheFirst) {
  begin(Mode::kExact);
  recorder().mapped(page_at(0), 4 * kPage, SiteKind::kSharedMap, capture_registers());
  Recorder::MovedRanges moved;
  recorder().begin_remap(page_at(0), 0, true, moved);
  recorder().remapped(moved, page_at(64), 4 * kPage, capture_registers());

  EXPECT_EQ(sums(SiteKind::kSharedMap).live_bytes, 8 * kPage);
  EXPECT_EQ(sums(SiteKind::kSharedMap).live_blocks, 2);
}

TEST_F(RecorderTest, AMovedMappingThatNobodyKnowsStaysUnknown) {
  begin(Mode::kExact);
  move_mapping(page_at(0), kPage, page_at(16), 2 * kPage);

  EXPECT_EQ(sums(SiteKind::kAnonymousMap).alloc_blocks, 0);
}

TEST_F(RecorderTest, RecordedMappingsThatGoWhileItSleepsAreReleased) {
  begin(Mode::kExact);
  recorder().mapped(page_at(0), 2 * kPage, SiteKind::kAnonymousMap, capture_registers());
  recorder().mapped(page_at(8), 2 * kPage, SiteKind::kAnonymousMap, capture_registers());
  set_mode(Mode::kDormant);
  move_mapping(page_at(0), 2 * kPage, page_at(64), 8 * kPage);
  recorder().mapped(page_at(9), kPage, SiteKind::kAnonymousMap, capture_registers());

  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_bytes, kPage);
  EXPECT_EQ(sums(SiteKind::kAnonymousMap).live_blocks, 1);
}

TEST_F(RecorderTest, DeviceBlocksAreRecordedInSampledModeToo) {
  begin(Mode::kSampled, 1U << 30U);
  recorder().acquired(block_at(1), 777, SiteKind::kCudaDevice, capture_registers());
  recorder().acquired(block_at(2), 111, SiteKind::kCudaPinned, capture_registers());
  recorder().gave_back(block_at(2));
  recorder().gave_back(block_at(3));

  EXPECT_EQ(sums(SiteKind::kCudaDevice).live_bytes, 777);
  EXPECT_EQ(sums(SiteKind::kCudaPinned).live_bytes, 0);
}

TEST_F(RecorderTest, ThreadsCountToTheSameSum) {
  begin(Mode::kExact);
  constexpr std::uintptr_t kThreads = 8;
  constexpr std::uintptr_t kEach = 4000;
  std::vector<std::thread> threads;
  for (std::uintptr_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (std::uintptr_t i = 0; i < kEach; ++i) {
        allocate(block_at(t * kEach + i), 50);
        if (i % 4 != 0) {
          release(block_at(t * kEach + i));
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  EXPECT_EQ(sums().alloc_blocks, kThreads * kEach);
  EXPECT_EQ(sums().live_blocks, kThreads * kEach / 4);
  EXPECT_EQ(sums().live_bytes, 50 * kThreads * kEach / 4);
}

}  // namespace
}  // namespace tidemark::tracer
