// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/memory_ledger.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "monitor/procfs/process_handle.h"
#include "tests/support/child_process.h"
#include "tests/support/fake_proc.h"

namespace tidemark::heap {
namespace {

using tests::ChildProcess;

constexpr std::uint64_t kMiB = 1U << 20U;

ProcessKey key_of(pid_t pid) {
  const auto key = monitor::process_key_of("/proc", pid);
  EXPECT_TRUE(key);
  return key ? *key : ProcessKey{};
}

std::uint64_t rss_of(const MemoryLedger& ledger, LedgerKind kind) {
  std::uint64_t bytes = 0;
  for (const LedgerRow& row : ledger.rows) {
    bytes += row.kind == kind ? row.rss_bytes : 0;
  }
  return bytes;
}

void fill(void* memory, std::size_t bytes) { std::memset(memory, 1, bytes); }

void* map(std::size_t bytes, int flags) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::_Exit(3);
  }
  return memory;
}

TEST(MemoryLedger, AddsUpToWhatTheKernelCounts) {
  const ChildProcess child([](const ChildProcess::Link& link) {
    fill(map(48 * kMiB, MAP_PRIVATE), 48 * kMiB);
    fill(map(24 * kMiB, MAP_SHARED), 24 * kMiB);
    link.signal_ready();
    link.wait_for_order();
  });
  ASSERT_TRUE(child.wait_ready());

  const auto ledger = read_ledger(key_of(child.pid()), 1.5);

  ASSERT_TRUE(ledger) << ledger.error().what;
  EXPECT_EQ(ledger->t_s, 1.5);
  EXPECT_EQ(ledger->moved_bytes, 0);
  EXPECT_LE(std::abs(ledger->unexplained_rss_bytes()),
            static_cast<std::int64_t>(ledger->rss_bytes / 100));
  EXPECT_LE(std::abs(ledger->unexplained_footprint_bytes()),
            static_cast<std::int64_t>(ledger->footprint_bytes / 100));
  EXPECT_GE(rss_of(*ledger, LedgerKind::kAnonymous), 48 * kMiB);
  EXPECT_GE(rss_of(*ledger, LedgerKind::kSharedMemory), 24 * kMiB);
  EXPECT_GT(rss_of(*ledger, LedgerKind::kProgram), 0U);
  EXPECT_GT(rss_of(*ledger, LedgerKind::kThreadStacks), 0U);
}

TEST(MemoryLedger, KnowsTheStacksOfThreads) {
  const ChildProcess child([](const ChildProcess::Link& link) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        volatile char deep[1 << 20];
        for (std::size_t at = 0; at < sizeof deep; at += 4096) {
          deep[at] = 1;
        }
        ::pause();
      });
    }
    // All of them wait when their stacks are deep.
    while (true) {
      const auto self = read_ledger(*monitor::process_key_of("/proc", ::getpid()), 0.0);
      if (self && rss_of(*self, LedgerKind::kThreadStacks) >= 3 * kMiB) {
        break;
      }
      std::this_thread::yield();
    }
    link.signal_ready();
    link.wait_for_order();
    std::_Exit(0);
  });
  ASSERT_TRUE(child.wait_ready());

  const auto ledger = read_ledger(key_of(child.pid()), 0.0);

  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->threads, 4U);
  EXPECT_GE(rss_of(*ledger, LedgerKind::kThreadStacks), 3 * kMiB);
  EXPECT_LT(rss_of(*ledger, LedgerKind::kThreadStacks), 6 * kMiB);
}

TEST(MemoryLedger, OfAProcessThatHasEndedIsGone) {
  ChildProcess child([](const ChildProcess::Link& link) { link.signal_ready(); });
  ASSERT_TRUE(child.wait_ready());
  const ProcessKey key = key_of(child.pid());
  child.wait_until_zombie();

  const auto of_zombie = read_ledger(key, 0.0);
  child.wait();
  const auto of_nobody = read_ledger(key, 0.0);

  ASSERT_FALSE(of_zombie);
  EXPECT_EQ(of_zombie.error().code, Errc::kGone);
  ASSERT_FALSE(of_nobody);
  EXPECT_EQ(of_nobody.error().code, Errc::kGone);
}

TEST(MemoryLedger, WithoutTheRightToReadMemorySaysSo) {
  // The files of a process that is none: its map can be read, its memory cannot.
  tests::FakeProc proc;
  tests::FakeProcess process;
  process.pid = 77;
  process.anon_kib = 8;
  proc.put(process);
  std::ofstream(proc.root() + "/77/smaps")
      << "55d0c000-55d0e000 rw-p 00000000 00:00 0 [heap]\nRss: 8 kB\nPss: 8 kB\n"
         "Anonymous: 8 kB\n";
  LedgerOptions options;
  options.proc_root = proc.root();

  const auto ledger = read_ledger(*monitor::process_key_of(proc.root(), 77), 0.0, options);

  ASSERT_TRUE(ledger) << ledger.error().what;
  EXPECT_THAT(ledger->problem, testing::HasSubstr("what is free in its heaps"));
  EXPECT_EQ(rss_of(*ledger, LedgerKind::kMalloc), 8192U);
  EXPECT_EQ(ledger->malloc_heaps, 0U);
}

}  // namespace
}  // namespace tidemark::heap
