// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/recorder.h"

#include <cerrno>
#include <cmath>
#include <thread>
#include <vector>

#include "tests/unit/tracer/no_alloc_scope.h"
#include "tests/unit/tracer/recorder_fixture.h"

namespace tidemark::tracer {
namespace {

using wire::Mode;
using wire::SiteKind;

TEST_F(RecorderTest, CountsLiveBlocks) {
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

TEST_F(RecorderTest, AResizedBlockKeepsItsEpoch) {
  begin(Mode::kExact);
  header().control.epoch.store(5);
  allocate(block_at(1), 100);
  header().control.epoch.store(9);
  resize(block_at(1), block_at(2), 300, Realloc::kMoves);

  EXPECT_EQ(sums().live_bytes, 300);
  EXPECT_EQ(sums().live_blocks, 1);
  Recorder::TakenBlock found;
  ASSERT_TRUE(recorder().begin_realloc(block_at(2), found));
  EXPECT_EQ(found.record.epoch, 5U);
  EXPECT_EQ(wire::unpack_size(found.record.size_and_period), 300U);
  recorder().record_free_by_realloc(found);
  EXPECT_EQ(sums().live_bytes, 0);
}

// A block that was not a sample has no recorded epoch: it gets that of the resize that samples it.
TEST_F(RecorderTest, AResizedSampleKeepsItsEpochAndAnotherBlockGetsTheCurrentOne) {
  begin(Mode::kSampled, 1);
  header().control.epoch.store(5);
  allocate(block_at(1), 1000);  // picked for certain, as are the others
  header().control.epoch.store(9);
  resize(block_at(1), block_at(2), 3000, Realloc::kMoves);
  resize(block_at(3), block_at(4), 3000, Realloc::kMoves);

  Recorder::TakenBlock kept;
  Recorder::TakenBlock fresh;
  ASSERT_TRUE(recorder().begin_realloc(block_at(2), kept));
  ASSERT_TRUE(recorder().begin_realloc(block_at(4), fresh));
  EXPECT_EQ(kept.record.epoch, 5U);
  EXPECT_EQ(fresh.record.epoch, 9U);
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

TEST_F(RecorderTest, AResizeToZeroIsAFree) {
  begin(Mode::kExact);
  allocate(block_at(1), 100);
  resize(block_at(1), nullptr, 0, Realloc::kFrees);

  EXPECT_EQ(sums().live_bytes, 0);
  EXPECT_EQ(sums().live_blocks, 0);
}

// A handler forked between the two: the number of the site is one of the parent's.
TEST_F(RecorderTest, ABlockThatTheParentTookOutIsNotTheChilds) {
  begin(Mode::kExact);
  allocate(block_at(1), 100);
  Recorder::TakenBlock old;
  ASSERT_TRUE(recorder().begin_realloc(block_at(1), old));
  old.record.site = 100'000;  // the child has no such site
  restart_in_child(Mode::kExact);

  recorder().finish_realloc(block_at(2), 300, &old, capture_registers());
  EXPECT_EQ(sums().live_bytes, 300);
  EXPECT_EQ(sums().alloc_bytes, 300);
  recorder().undo_realloc(block_at(1), old);
  EXPECT_EQ(sums().live_bytes, 300);
  recorder().record_free_by_realloc(old);
  EXPECT_EQ(sums().live_bytes, 300);
  release(block_at(1));
  EXPECT_EQ(losses().unknown_frees, 1U);
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
    recorder().maps().record_map(block_at(64), 4096, SiteKind::kAnonymousMap, capture_registers());
    recorder().maps().record_unmap(block_at(64), 4096);
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

TEST_F(RecorderTest, ANewPeriodIsUsed) {
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

TEST_F(RecorderTest, SamplesOfTooManyPeriodsAreCountedAsLost) {
  begin(Mode::kSampled, 1);
  for (std::uintptr_t i = 0; i < 100; ++i) {
    header().control.sample_every_bytes.store(1 + i);
    t_thread.remaining = 0;
    allocate(block_at(i), 100'000);
  }

  EXPECT_EQ(sums().alloc_blocks, static_cast<double>(wire::kMaxPeriods - 1));
  EXPECT_EQ(losses().sites_full, 100 - (wire::kMaxPeriods - 1));
}

// A block that grows step by step is sampled again each time: the estimate does not grow with it.
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

// Each short thread draws numbers of its own, although all have the same addresses.
TEST_F(RecorderTest, ShortThreadsAreSampledWithoutBias) {
  begin(Mode::kSampled, 4096);
  constexpr int kThreads = 1500;
  for (std::uintptr_t i = 0; i < kThreads; ++i) {
    std::thread([&] { allocate(block_at(i), 1000); }).join();
  }

  const double deviation = 1000 * std::sqrt(kThreads * 3.62);
  EXPECT_NEAR(sums().live_bytes, 1000.0 * kThreads, 5 * deviation);
}

TEST_F(RecorderTest, BlocksWithoutRoomAreCountedAsLost) {
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

[[gnu::noinline]] void from_many_stacks(unsigned depth, unsigned path, Recorder& recorder) {
  if (depth == 0) {
    recorder.record_alloc(block_at(1), 16, capture_registers());
  } else if ((path >> (depth - 1) & 1U) != 0) {  // one after the other share their outer frames
    from_many_stacks(depth - 1, path, recorder);
    asm volatile("nop");
  } else {
    from_many_stacks(depth - 1, path, recorder);
    asm volatile("" ::: "memory");
  }
}

// A stack without a site gets no nodes, however often it comes.
TEST_F(RecorderTest, StacksWithoutASiteUseNoNodes) {
  begin(Mode::kExact);
  header().control.most_file_bytes.store(header().file_bytes);
  for (unsigned i = 0; i < 20; ++i) {
    for (unsigned path = 0; path < 1024; ++path) {
      from_many_stacks(10, path, recorder());
    }
  }

  EXPECT_GT(losses().sites_full, 0U);
  EXPECT_EQ(sums().sites, first_items(wire::Table::kSites));
  EXPECT_LT(recorder().store().used(wire::Table::kNodes), first_items(wire::Table::kNodes));
}

TEST_F(RecorderTest, ItsHeaderSaysWhatIsNotAsItShouldBe) {
  recorder().set_reason("glibc is older than 2.35: call stacks have one frame only");
  begin(Mode::kExact);

  EXPECT_STREQ(header().reason, "glibc is older than 2.35: call stacks have one frame only");
}

TEST_F(RecorderTest, WithoutSystemCallsUsesTheRoomMadeAheadAndCountsTheRestAsLost) {
  begin(Mode::kExact);
  recorder().stop_system_calls();
  EXPECT_TRUE(sys::calls_are_stopped());
  const auto levels = recorder().store().extents(wire::Table::kLive);
  for (std::uintptr_t i = 0; i < 400'000; ++i) {
    allocate(block_at(i), 16);
  }

  EXPECT_EQ(recorder().store().extents(wire::Table::kLive), levels);
  EXPECT_GT(sums().live_blocks, 50'000);
  EXPECT_EQ(sums().live_blocks + static_cast<double>(losses().live_full), 400'000);
  recorder().resume_system_calls();
  EXPECT_FALSE(sys::calls_are_stopped());
}

TEST_F(RecorderTest, StopsSystemCallsUntilNeitherItNorAChildIsFiltered) {
  const int local = 0;
  const auto here = reinterpret_cast<std::uint64_t>(&local);
  begin(Mode::kExact);

  recorder().stop_system_calls();
  stop_system_calls_for_child();
  stop_system_calls_for_child();
  resume_system_calls_for_child();
  recorder().resume_system_calls();

  EXPECT_TRUE(sys::calls_are_stopped());
  EXPECT_FALSE(is_readable(here));
  resume_system_calls_for_child();
  EXPECT_FALSE(sys::calls_are_stopped());
  EXPECT_TRUE(is_readable(here));
}

TEST_F(RecorderTest, DeviceBlocksAreRecordedInSampledModeToo) {
  begin(Mode::kSampled, 1U << 30U);
  recorder().record_cuda_alloc(block_at(1), 777, SiteKind::kCudaDevice, capture_registers());
  recorder().record_cuda_alloc(block_at(2), 111, SiteKind::kCudaPinned, capture_registers());
  recorder().record_cuda_free(block_at(2));
  recorder().record_cuda_free(block_at(3));

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
