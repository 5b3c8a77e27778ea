// SPDX-License-Identifier: Apache-2.0
// Trace files that no honest tracer writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "profiler/reader/trace_file.h"
#include "tests/support/open_trace.h"
#include "tests/support/trace_builder.h"

namespace tidemark::reader {
namespace {

using tests::open_trace;
using tests::TraceBuilder;
using wire::Header;
using wire::Table;

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

wire::TableDirectory& directory(Header& header, Table table) {
  return header.table[static_cast<std::size_t>(table)];
}

void fill(TraceBuilder& builder) {
  builder.set_extents(2);
  for (std::uint64_t i = 0; i < 4; ++i) {
    builder.add_module("/lib/module.so", i * 0x1000 + 0x1000, i * 0x1000 + 0x2000, 0, "\x01\x02");
    const auto node = builder.add_stack({i * 0x1000 + 0x1010, i * 0x1000 + 0x1020});
    const auto site = builder.add_site({node, wire::SiteKind::kHeap, 8, 1});
    builder.add_block(0x10000 + i * 16, 8, site);
    builder.add_range(0x7f00'0000'0000 + i * 0x10000, 4096, site);
  }
}

// Reads everything that there is to read.
Result<TraceSnapshot> read_all(std::string_view bytes) {
  auto file = open_trace(bytes);
  if (!file) {
    return file.error();
  }
  auto snapshot = file->snapshot();
  if (!snapshot) {
    return snapshot.error();
  }
  for (const SiteCounts& site : snapshot->sites) {
    EXPECT_LE(file->stack(site.node).size(), 256U);
  }
  EXPECT_TRUE(file->live_blocks({true, {}, 100}));
  return snapshot;
}

Errc error_of(TraceBuilder& builder) {
  const auto read = read_all(builder.bytes());
  EXPECT_FALSE(read);
  return read ? Errc::kIo : read.error().code;
}

TEST(TraceDamage, AFileCutOffAnywhereIsReadAsFarAsItGoes) {
  TraceBuilder builder;
  fill(builder);
  const std::string whole = builder.bytes();

  for (std::size_t size = 0; size <= whole.size(); size += 64) {
    const auto snapshot = read_all(std::string_view(whole).substr(0, size));
    if (size < wire::kHeaderBytes) {
      ASSERT_FALSE(snapshot) << size;
      EXPECT_EQ(snapshot.error().code, Errc::kMalformed) << size;
    } else {
      ASSERT_TRUE(snapshot) << size;
      EXPECT_EQ(snapshot->sites.size() + snapshot->read_losses.unread_items, 4U) << size;
    }
  }
  EXPECT_EQ(read_all(whole)->sites.size(), 4U);
}

TEST(TraceDamage, RefusesAnotherMagic) {
  TraceBuilder builder;
  builder.header().magic ^= 1;

  EXPECT_EQ(error_of(builder), Errc::kMalformed);
}

TEST(TraceDamage, SaysWhichVersionItCannotRead) {
  TraceBuilder builder;
  builder.header().format_version = wire::kFormatVersion + 1;

  const auto read = read_all(builder.bytes());

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kUnsupported);
  EXPECT_THAT(read.error().what, testing::HasSubstr("version 2"));
}

TEST(TraceDamage, RefusesAHeaderOfAnotherSize) {
  TraceBuilder builder;
  builder.header().header_bytes = 8192;

  EXPECT_EQ(error_of(builder), Errc::kMalformed);
}

TEST(TraceDamage, RefusesStagesAndModesThatDoNotExist) {
  TraceBuilder stage;
  stage.header().stage = 5;
  TraceBuilder mode;
  mode.header().control.mode = 3;

  EXPECT_EQ(error_of(stage), Errc::kMalformed);
  EXPECT_EQ(error_of(mode), Errc::kMalformed);
}

TEST(TraceDamage, RefusesMoreExtentsThanADirectoryHolds) {
  TraceBuilder builder;
  builder.damage(
      [](Header& header) { directory(header, Table::kSites).extents = wire::kMaxExtents + 1; });

  EXPECT_EQ(error_of(builder), Errc::kMalformed);
}

TEST(TraceDamage, RefusesExtentsInImpossiblePlaces) {
  const wire::Extent impossible[] = {
      {0, 1},  // in the header
      {wire::kHeaderBytes - 64, 1},
      {8192, kHuge / 64 + 1},  // its size wraps around
      {kHuge - 63, 1},         // its end wraps around
      {std::uint64_t{1} << 63U, 1},
  };
  for (const wire::Extent& extent : impossible) {
    TraceBuilder builder;
    fill(builder);
    builder.damage(
        [&extent](Header& header) { directory(header, Table::kSites).extent[0] = extent; });
    EXPECT_EQ(error_of(builder), Errc::kMalformed) << extent.offset << " " << extent.items;
  }
}

TEST(TraceDamage, RefusesExtentsThatOverlap) {
  TraceBuilder same_table;
  fill(same_table);
  same_table.damage([](Header& header) {
    wire::TableDirectory& sites = directory(header, Table::kSites);
    sites.extent[1].offset = sites.extent[0].offset + 64;
  });
  TraceBuilder two_tables;
  fill(two_tables);
  two_tables.damage([](Header& header) {
    directory(header, Table::kLive).extent[0].offset =
        directory(header, Table::kNodes).extent[0].offset;
  });

  EXPECT_EQ(error_of(same_table), Errc::kMalformed);
  EXPECT_EQ(error_of(two_tables), Errc::kMalformed);
}

TEST(TraceDamage, ClaimsBeyondTheEndOfTheFileCostNothing) {
  TraceBuilder builder;
  fill(builder);
  builder.damage([](Header& header) {
    std::uint64_t offset = std::uint64_t{1} << 40U;
    for (wire::TableDirectory& table : header.table) {
      table.extent[table.extents++] = {offset, std::uint64_t{1} << 50U};
      table.used = kHuge;
      offset += std::uint64_t{1} << 58U;
    }
  });

  const auto read = read_all(builder.bytes());

  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->sites.size(), 4U);
  EXPECT_EQ(read->modules, 4U);
  EXPECT_EQ(read->read_losses.unread_items, std::uint64_t{1} << 50U);
}

TEST(TraceDamage, MoreItemsHandedOutThanThereIsRoomForAreNotRead) {
  TraceBuilder builder;
  fill(builder);
  builder.damage([](Header& header) {
    for (wire::TableDirectory& table : header.table) {
      table.used = table.used + 1'000'000;
    }
  });

  const auto read = read_all(builder.bytes());

  ASSERT_TRUE(read);
  EXPECT_EQ(read->sites.size(), 4U);
  EXPECT_EQ(read->read_losses, ReadLosses{});
}

TEST(TraceDamage, NodesInACircleEndAfterTheMostFrames) {
  TraceBuilder builder;
  const auto outer = builder.add_node(0, 0x10);
  const auto inner = builder.add_node(outer, 0x20);
  builder.node(outer).parent = inner;
  builder.add_site({inner});
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->snapshot());

  EXPECT_EQ(file->stack(inner).size(), 256U);
}

TEST(TraceDamage, AStackEndsAtANodeThatDoesNotExist) {
  TraceBuilder builder;
  const auto node = builder.add_stack({0x10, 0x20});
  builder.node(1).parent = 4711;
  builder.add_site({node});
  builder.add_site({0xffff'ffff});
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->snapshot());

  EXPECT_EQ(file->stack(node).size(), 2U);
  EXPECT_TRUE(file->stack(0xffff'ffff).empty());
  EXPECT_TRUE(file->stack(0).empty());
}

TEST(TraceDamage, AStackEndsAtANodeOfNoKnownKind) {
  TraceBuilder builder;
  const auto node = builder.add_stack({0x10, 0x20, 0x30});
  builder.node(1).kind = 3;
  builder.add_site({node});
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->snapshot());

  EXPECT_EQ(file->stack(node).size(), 2U);
}

TEST(TraceDamage, CountsSitesOfNoKnownKind) {
  TraceBuilder builder;
  builder.add_site({0, wire::SiteKind{0}});
  builder.add_site({0, wire::SiteKind{static_cast<int>(wire::SiteKind::kThreadStart) + 1}});
  builder.add_site({});

  const auto read = read_all(builder.bytes());

  ASSERT_TRUE(read);
  EXPECT_EQ(read->sites.size(), 1U);
  EXPECT_EQ(read->read_losses.damaged_items, 2U);
}

TEST(TraceDamage, ModulesThatMakeNoSenseKeepTheirIndexAndHoldNothing) {
  TraceBuilder builder;
  for (int i = 0; i < 6; ++i) {
    builder.add_module("/lib/a.so", 0x1000, 0x2000, 0);
  }
  builder.module(0).end = 0x1000;
  builder.module(1).build_id_bytes = 21;
  builder.module(2).path_offset = 0xffff'ffff;
  builder.module(3).path_bytes = 0xffff'ffff;
  builder.module(4).ready = 7;
  const auto node = builder.add_stack({0x1010});
  builder.add_site({node});
  auto file = open_trace(builder.bytes());
  ASSERT_TRUE(file);

  const auto snapshot = file->snapshot();

  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->read_losses.damaged_items, 5U);
  EXPECT_EQ(file->modules().size(), 6U);
  EXPECT_EQ(file->modules()[2].path, "");
  EXPECT_EQ(file->stack(node).at(0).module, 5U);
}

TEST(TraceDamage, AReasonWithoutAnEndIsCutOff) {
  TraceBuilder builder;
  for (char& letter : builder.header().reason) {
    letter = 'x';
  }

  const auto read = read_all(builder.bytes());

  ASSERT_TRUE(read);
  EXPECT_EQ(read->reason, std::string(96, 'x'));
}

}  // namespace
}  // namespace tidemark::reader
