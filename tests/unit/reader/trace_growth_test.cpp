// SPDX-License-Identifier: Apache-2.0
// A trace file that is written while it is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "profiler/reader/trace_file.h"
#include "tests/support/open_trace.h"
#include "tests/support/trace_builder.h"

namespace tidemark::reader {
namespace {

using tests::memory_file;
using tests::rewrite;
using tests::TraceBuilder;

struct Watched {
  Fd writer;
  TraceFile file;
};

Watched watch(const std::string& bytes) {
  Fd writer = memory_file(bytes);
  auto file = TraceFile::adopt(Fd(::dup(writer.get())));
  TIDEMARK_CHECK(file, "the trace of the test is not one");
  return {std::move(writer), std::move(*file)};
}

TEST(TraceGrowth, SeesWhatCameSinceTheLastSnapshot) {
  TraceBuilder builder;
  builder.add_module("/lib/a.so", 0x1000, 0x2000, 0);
  builder.add_site({builder.add_stack({0x1010}), wire::SiteKind::kHeap, 1});
  Watched watched = watch(builder.bytes());
  ASSERT_TRUE(watched.file.snapshot());
  builder.add_module("/lib/b.so", 0x5000, 0x6000, 0);
  const auto node = builder.add_stack({0x5010, 0x1020});
  builder.add_site({node, wire::SiteKind::kHeap, 2});

  rewrite(watched.writer, builder.bytes());
  const auto snapshot = watched.file.snapshot();

  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->sites.size(), 2U);
  EXPECT_EQ(snapshot->modules, 2U);
  EXPECT_EQ(snapshot->nodes, 4U);
  const auto frames = watched.file.stack(node);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].module, 1U);
  EXPECT_EQ(frames[1].module, 0U);
}

TEST(TraceGrowth, ReadsANodeAgainThatWasSeenBeforeItWasWritten) {
  TraceBuilder builder;
  const auto outer = builder.add_node(0, 0x1020);
  const auto inner = builder.add_node(outer, 0x1010);
  builder.node(outer) = {};
  builder.node(inner) = {0x1010, 0, 0, 0, 1, 0};  // its parent is not written yet
  builder.add_site({inner});
  builder.site(0).ready = 0;
  Watched watched = watch(builder.bytes());
  ASSERT_TRUE(watched.file.snapshot());
  builder.node(outer) = {0x1020, 0, 0, 0, 1, 0};
  builder.node(inner) = {0x1010, outer, 0, 0, 1, 0};
  builder.site(0).ready = 1;

  rewrite(watched.writer, builder.bytes());
  ASSERT_TRUE(watched.file.snapshot());

  const auto frames = watched.file.stack(inner);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].value, 0x1010U);
  EXPECT_EQ(frames[1].value, 0x1020U);
}

TEST(TraceGrowth, ASiteMayBecomeThatOfAnotherStack) {
  TraceBuilder builder;
  const auto node = builder.add_stack({0x1010, 0x1020});
  builder.add_site({node, wire::SiteKind::kHeap, 100, 1});
  Watched watched = watch(builder.bytes());
  const auto first = watched.file.snapshot();
  ASSERT_TRUE(first);
  ASSERT_TRUE(watched.file.is_same(first->sites.at(0)));
  builder.node(node).value = 0x5010;
  builder.site(0).ready = 2;

  rewrite(watched.writer, builder.bytes());

  EXPECT_FALSE(watched.file.is_same(first->sites.at(0)));
  const auto second = watched.file.snapshot();
  ASSERT_TRUE(second);
  EXPECT_NE(second->sites.at(0).stack, first->sites.at(0).stack);
  EXPECT_EQ(watched.file.stack(node).at(0).value, 0x5010U);
  EXPECT_TRUE(watched.file.is_same(second->sites.at(0)));
}

TEST(TraceGrowth, CountsWhatRecycledSitesHaveFreed) {
  TraceBuilder builder;
  builder.add_site({builder.add_stack({0x1010}), wire::SiteKind::kHeap, 300, 3, 200, 2});
  builder.header().recycled.sites = 10;
  builder.header().recycled.block_units = 40 * wire::kBlockUnit;
  Watched watched = watch(builder.bytes());

  const auto snapshot = watched.file.snapshot();

  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->ready_sites, 11U);
  EXPECT_EQ(snapshot->freed_blocks, 42.0);
}

TEST(TraceGrowth, AFrameBelongsToAModuleThatWasListedBeforeIt) {
  TraceBuilder builder;
  builder.add_module("/lib/old.so", 0x1000, 0x2000, 0);
  const auto before = builder.add_stack({0x1010});
  builder.add_module("/lib/new.so", 0x1000, 0x2000, 0);
  const auto after = builder.add_stack({0x1010});
  builder.add_site({before});
  builder.add_site({after});
  std::swap(builder.node(before), builder.node(after));  // nodes are used again in any order
  Watched watched = watch(builder.bytes());

  ASSERT_TRUE(watched.file.snapshot());

  EXPECT_EQ(watched.file.stack(before).at(0).module, 1U);
  EXPECT_EQ(watched.file.stack(after).at(0).module, 0U);
}

TEST(TraceGrowth, TakesAModuleUpOnceItIsComplete) {
  TraceBuilder builder;
  builder.add_module("/lib/slow.so", 0x1000, 0x2000, 0);
  builder.add_module("/lib/quick.so", 0x5000, 0x6000, 0);
  const auto node = builder.add_stack({0x1010, 0x5010});
  builder.add_site({node});
  builder.module(0).ready = 0;
  Watched watched = watch(builder.bytes());
  ASSERT_TRUE(watched.file.snapshot());
  EXPECT_EQ(watched.file.stack(node).at(0).module, std::nullopt);
  EXPECT_EQ(watched.file.stack(node).at(1).module, 1U);
  builder.module(0).ready = 1;

  rewrite(watched.writer, builder.bytes());
  ASSERT_TRUE(watched.file.snapshot());

  EXPECT_EQ(watched.file.stack(node).at(0).module, 0U);
  EXPECT_EQ(watched.file.modules().at(0).path, "/lib/slow.so");
}

TEST(TraceGrowth, HasNoSitesAndNoStacksOnceTheFileIsCutOff) {
  TraceBuilder builder;
  builder.add_module("/lib/a.so", 0x1000, 0x2000, 0);
  const auto node = builder.add_stack({0x1010});
  builder.add_site({node});
  Watched watched = watch(builder.bytes());
  ASSERT_TRUE(watched.file.snapshot());

  ASSERT_EQ(::ftruncate(watched.writer.get(), wire::kHeaderBytes), 0);
  const auto cut = watched.file.snapshot();
  ASSERT_EQ(::ftruncate(watched.writer.get(), 0), 0);
  const auto gone = watched.file.snapshot();

  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->sites.empty());
  EXPECT_EQ(cut->read_losses.unread_items, 1U);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Errc::kMalformed);
  EXPECT_TRUE(watched.file.stack(node).empty());
}

}  // namespace
}  // namespace tidemark::reader
