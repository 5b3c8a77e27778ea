// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "common/io.h"
#include "tests/support/open_trace.h"
#include "tests/support/temp_tree.h"
#include "tests/support/trace_builder.h"

namespace tidemark::reader {
namespace {

using tests::open_trace;
using tests::TempTree;
using tests::TraceBuilder;
using wire::Mode;
using wire::SiteKind;
using wire::Stage;

std::vector<std::uint64_t> values_of(const std::vector<StackFrame>& frames) {
  std::vector<std::uint64_t> values;
  for (const StackFrame& frame : frames) {
    values.push_back(frame.value);
  }
  return values;
}

TEST(TraceFile, KnowsWhoWroteIt) {
  TraceBuilder builder;
  builder.header().forked = 1;

  const auto file = open_trace(builder.bytes());

  ASSERT_TRUE(file) << file.error().what;
  EXPECT_EQ(file->identity(), (TraceIdentity{100, 99, 5000, 4026531836, 1'000'000'000, true}));
}

TEST(TraceFile, ReadsEveryFieldOfTheHeader) {
  TraceBuilder builder;
  wire::Header& header = builder.header();
  header.stage = static_cast<std::uint32_t>(Stage::kExited);
  std::strcpy(header.reason, "no memory");
  header.private_bytes = 4096;
  header.extend_errno = ENOSPC;
  header.control.mode = static_cast<std::uint32_t>(Mode::kSampled);
  header.control.sample_every_bytes = 524288;
  header.control.epoch = wire::kEpochIsStep | 7;
  std::uint64_t value = 0;
  for (auto* loss :
       {&header.losses.live_full, &header.losses.sites_full, &header.losses.ranges_full,
        &header.losses.unknown_frees, &header.losses.truncated_stacks, &header.losses.empty_stacks,
        &header.losses.extend_failures, &header.losses.reentered, &header.losses.missed_frees}) {
    *loss = ++value;
  }
  const std::string bytes = builder.bytes();
  auto file = open_trace(bytes);
  ASSERT_TRUE(file);

  const auto snapshot = file->snapshot();

  ASSERT_TRUE(snapshot) << snapshot.error().what;
  EXPECT_EQ(snapshot->stage, Stage::kExited);
  EXPECT_EQ(snapshot->reason, "no memory");
  EXPECT_EQ(snapshot->mode, TraceMode::kSampled);
  EXPECT_EQ(snapshot->sample_every_bytes, 524288U);
  EXPECT_EQ(snapshot->epoch, wire::kEpochIsStep | 7U);
  EXPECT_EQ(snapshot->private_bytes, 4096U);
  EXPECT_EQ(snapshot->file_bytes, bytes.size());
  EXPECT_EQ(snapshot->extend_errno, ENOSPC);
  EXPECT_EQ(snapshot->losses, (TraceLosses{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(snapshot->read_losses, ReadLosses{});
}

TEST(TraceFile, ReadsSitesWithTheirExactCounts) {
  TraceBuilder builder;
  const auto node = builder.add_stack({0x1010, 0x1020});
  builder.add_site({node, SiteKind::kHeap, 1000, 10, 400, 4, 900, 3});
  builder.add_site({node, SiteKind::kCudaPinned, 5, 1, 0, 0, 5, 0});
  builder.site(1).alloc_block_units = 640;  // two and a half
  builder.site(1).truncated = 1;
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file);

  const auto snapshot = file->snapshot();

  ASSERT_TRUE(snapshot);
  ASSERT_EQ(snapshot->sites.size(), 2U);
  const SiteCounts& first = snapshot->sites[0];
  EXPECT_EQ(first.index, 0U);
  EXPECT_EQ(first.kind, AllocationKind::kHeap);
  EXPECT_EQ(first.alloc_bytes, 1000U);
  EXPECT_EQ(first.free_bytes, 400U);
  EXPECT_EQ(first.live_bytes(), 600U);
  EXPECT_EQ(first.peak_live_bytes, 900U);
  EXPECT_EQ(first.alloc_blocks, 10.0);
  EXPECT_EQ(first.live_blocks(), 6.0);
  EXPECT_EQ(first.temporary_blocks, 3.0);
  EXPECT_FALSE(first.truncated);
  EXPECT_EQ(snapshot->sites[1].alloc_blocks, 2.5);
  EXPECT_EQ(snapshot->sites[1].kind, AllocationKind::kCudaPinned);
  EXPECT_TRUE(snapshot->sites[1].truncated);
}

TEST(TraceFile, LiveCountsOfASiteReadInBetweenAreNotNegative) {
  SiteCounts counts;
  counts.alloc_bytes = 10;
  counts.free_bytes = 20;
  counts.alloc_blocks = 1.0;
  counts.free_blocks = 2.0;

  EXPECT_EQ(counts.live_bytes(), 0U);
  EXPECT_EQ(counts.live_blocks(), 0.0);
}

TEST(TraceFile, LeavesOutASiteThatIsBeingSetUp) {
  TraceBuilder builder;
  builder.add_site({});
  builder.add_site({});
  builder.site(0).ready = 0;
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file);

  const auto snapshot = file->snapshot();

  ASSERT_TRUE(snapshot);
  ASSERT_EQ(snapshot->sites.size(), 1U);
  EXPECT_EQ(snapshot->sites[0].index, 1U);
  EXPECT_EQ(snapshot->read_losses.damaged_items, 0U);
}

TEST(TraceFile, WalksAStackFromTheInnermostFrame) {
  TraceBuilder builder;
  builder.add_module("/lib/a.so", 0x1000, 0x2000, 0x800, "\xab\x01");
  builder.add_module("/lib/b.so", 0x5000, 0x6000, 0x5000);
  const auto node = builder.add_stack({0x1010, 0x5020, 0x9000});
  builder.add_site({node});
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->snapshot());

  const auto frames = file->stack(node);

  EXPECT_THAT(values_of(frames), testing::ElementsAre(0x1010, 0x5020, 0x9000));
  EXPECT_EQ(frames[0].module, 0U);
  EXPECT_EQ(frames[1].module, 1U);
  EXPECT_EQ(frames[2].module, std::nullopt);
  ASSERT_EQ(file->modules().size(), 2U);
  EXPECT_EQ(file->modules()[0].path, "/lib/a.so");
  EXPECT_EQ(file->modules()[0].build_id, "ab01");
  EXPECT_EQ(file->modules()[1].build_id, "");
  EXPECT_EQ(call_address(frames[0], file->modules()[0]), 0x80fU);
}

TEST(TraceFile, AReturnAddressBehindAModuleBelongsToItsLastCall) {
  TraceBuilder builder;
  builder.add_module("/lib/a.so", 0x1000, 0x2000, 0x1000);
  builder.add_module("/lib/b.so", 0x2000, 0x3000, 0x2000);
  const auto node = builder.add_stack({0x2000});
  builder.add_site({node});
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->snapshot());

  EXPECT_EQ(file->stack(node).at(0).module, 0U);
}

TEST(TraceFile, AFrameBelongsToTheModuleThatWasThereWhenItsNodeWasMade) {
  TraceBuilder builder;
  builder.add_module("/lib/first.so", 0x1000, 0x3000, 0x1000);
  const auto early = builder.add_stack({0x2010});
  builder.add_module("/lib/second.so", 0x2000, 0x4000, 0x2000);
  const auto late = builder.add_stack({0x2010});
  builder.add_site({early});
  builder.add_site({late});
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->snapshot());

  EXPECT_EQ(file->stack(early).at(0).module, 0U);
  EXPECT_EQ(file->stack(late).at(0).module, 1U);
}

TEST(TraceFile, AFrameFromBeforeAModuleIsNotInIt) {
  TraceBuilder builder;
  const auto node = builder.add_stack({0x1010});
  builder.add_module("/lib/late.so", 0x1000, 0x2000, 0x1000);
  builder.add_site({node});
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->snapshot());

  EXPECT_EQ(file->stack(node).at(0).module, std::nullopt);
}

TEST(TraceFile, ReadsTablesThatLieInSeveralExtents) {
  TraceBuilder builder;
  builder.set_extents(5);
  std::vector<std::uint32_t> nodes;
  for (std::uint64_t i = 0; i < 23; ++i) {
    builder.add_module("/lib/module" + std::to_string(i) + ".so", i * 0x1000 + 0x1000,
                       i * 0x1000 + 0x2000, 0);
    nodes.push_back(builder.add_stack({i * 0x1000 + 0x1500, i * 0x1000 + 0x1600}));
    builder.add_site({nodes.back(), SiteKind::kHeap, i});
    builder.add_block(0x100000 + i * 64, i, static_cast<std::uint32_t>(i));
  }
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file) << file.error().what;

  const auto snapshot = file->snapshot();
  const auto live = file->live_blocks();

  ASSERT_TRUE(snapshot);
  ASSERT_TRUE(live);
  ASSERT_EQ(snapshot->sites.size(), 23U);
  ASSERT_EQ(live->sites.size(), 23U);
  for (std::uint32_t i = 0; i < 23; ++i) {
    EXPECT_EQ(snapshot->sites[i].alloc_bytes, i);
    EXPECT_EQ(file->modules()[i].path, "/lib/module" + std::to_string(i) + ".so");
    const auto frames = file->stack(nodes[i]);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].value, i * 0x1000U + 0x1500U);
    EXPECT_EQ(frames[1].module, i);
    EXPECT_EQ(live->sites[i].bytes, i);
  }
}

TEST(TraceFile, OrdersReachTheControlBlock) {
  TempTree tree;
  TraceBuilder builder;
  tree.write("a.trace", builder.bytes());
  auto file = TraceFile::open(tree.path("a.trace"), {TraceOpenOptions::Access::kControl, {}});
  ASSERT_TRUE(file) << file.error().what;

  EXPECT_TRUE(file->set_sample_every(65536));
  EXPECT_TRUE(file->set_mode(TraceMode::kSampled));
  EXPECT_TRUE(file->set_epoch_seconds(12));
  const auto by_seconds = file->snapshot();
  EXPECT_TRUE(file->set_epoch_step(40));
  const auto by_steps = file->snapshot();

  ASSERT_TRUE(by_seconds);
  ASSERT_TRUE(by_steps);
  EXPECT_EQ(by_seconds->mode, TraceMode::kSampled);
  EXPECT_EQ(by_seconds->sample_every_bytes, 65536U);
  EXPECT_EQ(by_seconds->epoch, 12U);
  EXPECT_EQ(by_steps->epoch, wire::kEpochIsStep | 40U);
}

TEST(TraceFile, RefusesOrdersWhenItIsOpenForReadingOnly) {
  TraceBuilder builder;
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file);

  const auto done = file->set_mode(TraceMode::kDormant);

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::kPermission);
  EXPECT_EQ(file->snapshot()->mode, TraceMode::kExact);
}

TEST(TraceFile, RefusesAPeriodOfNoBytes) {
  TempTree tree;
  TraceBuilder builder;
  tree.write("a.trace", builder.bytes());
  auto file = TraceFile::open(tree.path("a.trace"), {TraceOpenOptions::Access::kControl, {}});
  ASSERT_TRUE(file);

  const auto done = file->set_sample_every(0);

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::kUsage);
}

TEST(TraceFile, DoesNotFollowLinks) {
  TempTree tree;
  TraceBuilder builder;
  tree.write("real.trace", builder.bytes());
  tree.link("link.trace", tree.path("real.trace"));

  const auto file = TraceFile::open(tree.path("link.trace"));

  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Errc::kPermission);
}

TEST(TraceFile, DoesNotWaitForAPipeOrReadADirectory) {
  TempTree tree;
  tree.make_directory("folder.trace");
  ASSERT_EQ(::mkfifo(tree.path("pipe.trace").c_str(), 0600), 0);

  for (const char* name : {"folder.trace", "pipe.trace"}) {
    const auto file = TraceFile::open(tree.path(name));
    ASSERT_FALSE(file) << name;
    EXPECT_EQ(file.error().code, Errc::kPermission) << name;
  }
}

TEST(TraceFile, RefusesTheFileOfAnotherUser) {
  TempTree tree;
  TraceBuilder builder;
  tree.write("a.trace", builder.bytes());

  const auto file =
      TraceFile::open(tree.path("a.trace"), {TraceOpenOptions::Access::kRead, ::geteuid() + 1});

  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Errc::kPermission);
  EXPECT_THAT(file.error().what, testing::HasSubstr("a.trace: "));
}

TEST(TraceFile, IsReadableAfterItsRemoval) {
  TempTree tree;
  TraceBuilder builder;
  builder.add_site({0, SiteKind::kHeap, 77});
  tree.write("a.trace", builder.bytes());
  auto file = TraceFile::open(tree.path("a.trace"));
  ASSERT_TRUE(file);

  tree.remove("a.trace");
  const auto snapshot = file->snapshot();

  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->sites.at(0).alloc_bytes, 77U);
}

TEST(TraceFile, IsNotThereUntilItsTracerHasSetItUp) {
  TraceBuilder builder;
  builder.header().stage = static_cast<std::uint32_t>(Stage::kSettingUp);

  const auto file = open_trace(builder.bytes());

  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace tidemark::reader
