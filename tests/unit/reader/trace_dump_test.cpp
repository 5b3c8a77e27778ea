// SPDX-License-Identifier: Apache-2.0
#include "tests/support/trace_dump.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "profiler/reader/trace_file.h"
#include "tests/support/golden.h"
#include "tests/support/open_trace.h"
#include "tests/support/trace_builder.h"

namespace tidemark::reader {
namespace {

using tests::difference_from_golden;
using tests::dump_text;
using tests::open_trace;
using tests::TraceBuilder;

std::string dump(TraceBuilder& builder) {
  auto file = open_trace(builder.bytes());
  EXPECT_TRUE(file);
  const auto snapshot = file->snapshot();
  EXPECT_TRUE(snapshot);
  return dump_text(*snapshot, file->modules()) + dump_text(*file->live_blocks());
}

TEST(TraceDump, PrintsOneLinePerModuleSiteAndLoss) {
  TraceBuilder builder;
  builder.header().control.epoch = wire::kEpochIsStep | 3;
  builder.header().losses.unknown_frees = 12;
  builder.add_module("/lib/a.so", 0x1000, 0x2000, 0x1000, "\xab\xcd");
  builder.add_module("/lib/strange\nname.so", 0x3000, 0x4000, 0x3000);
  const auto node = builder.add_stack({0x1010, 0x3020});
  const auto heap = builder.add_site({node, wire::SiteKind::kHeap, 1000, 10, 400, 4, 900, 3});
  const auto map = builder.add_site({node, wire::SiteKind::kSharedMap, 8192, 1, 0, 0, 8192, 0});
  builder.site(heap).truncated = 1;
  builder.add_block(0x10000, 500, heap, wire::kEpochIsStep | 1);
  builder.add_block(0x20000, 100, heap, wire::kEpochIsStep | 3, builder.add_period(1000));
  builder.add_range(0x7f0000000000, 8192, map, 2);
  builder.add_block(0x30000, 1, 4711);

  EXPECT_EQ(difference_from_golden("reader/dump.txt", dump(builder)), "");
}

TEST(TraceDump, PrintsWhatATracerDoesNotRecord) {
  TraceBuilder builder;
  builder.header().extend_errno = ENOSPC;
  std::strcpy(builder.header().reason, "the file cannot grow\x1b[31m");

  EXPECT_EQ(difference_from_golden("reader/dump_limited.txt", dump(builder)), "");
}

}  // namespace
}  // namespace tidemark::reader
