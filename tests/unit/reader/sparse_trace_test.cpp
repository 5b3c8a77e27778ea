// SPDX-License-Identifier: Apache-2.0
// Trace files that claim far more than they hold.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "profiler/reader/trace_image.h"
#include "profiler/reader/traced_file.h"
#include "tests/support/in_child.h"
#include "tests/support/open_trace.h"
#include "tests/support/trace_builder.h"

namespace tidemark::reader {
namespace {

using tests::TraceBuilder;
using wire::Table;

constexpr std::uint64_t kSparseSites = kMostSites;
constexpr std::uint64_t kSparseNodes = kMostNodes;
constexpr std::uint64_t kSparseBuckets = std::uint64_t{1} << 22U;

long most_resident_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// A file with one honest site, and behind it tables that are holes, but for a site and its node at
// their very ends.
Fd sparse_file() {
  TraceBuilder builder;
  builder.add_site({builder.add_stack({0x1010, 0x1}), wire::SiteKind::kHeap, 4096, 1});
  const std::uint64_t sites_at = std::uint64_t{1} << 20U;
  const std::uint64_t nodes_at = sites_at + kSparseSites * sizeof(wire::Site);
  const std::uint64_t live_at = nodes_at + kSparseNodes * sizeof(wire::StackNode);
  const std::uint64_t end = live_at + kSparseBuckets * sizeof(wire::LiveBucket);
  std::uint64_t last_site_at = 0;
  std::uint64_t last_node_at = 0;
  builder.damage([&](wire::Header& header) {
    // Another extent, so that the table has `all` items; returns where the last one lies.
    const auto extend = [&](Table table, std::uint64_t offset, std::uint64_t all) {
      wire::TableDirectory& directory = header.table[static_cast<std::size_t>(table)];
      const std::uint64_t items = all - directory.used;
      directory.extent[directory.extents++] = {offset, items};
      directory.used = table == Table::kLive ? 0 : all;
      return offset + (items - 1) * wire::item_bytes(table);
    };
    last_site_at = extend(Table::kSites, sites_at, kSparseSites);
    last_node_at = extend(Table::kNodes, nodes_at, kSparseNodes);
    extend(Table::kLive, live_at, kSparseBuckets);
  });
  Fd file = tests::memory_file(builder.bytes());
  const wire::StackNode node{0x2020, 0, 0, 0, 1, 0};
  wire::Site site{};
  site.alloc_bytes = 8192;
  site.node = static_cast<std::uint32_t>(kSparseNodes - 1);
  site.kind = wire::SiteKind::kHeap;
  site.ready = 1;
  const auto put = [&](const auto& item, std::uint64_t offset) {
    return ::pwrite(file.get(), &item, sizeof item, static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(sizeof item);
  };
  TIDEMARK_CHECK(::ftruncate(file.get(), static_cast<off_t>(end)) == 0 && put(site, last_site_at) &&
                     put(node, last_node_at),
                 "cannot make a sparse file");
  return file;
}

TEST(SparseTrace, CostsWhatItHolds) {
  const std::string answer = tests::in_child([] {
    const long before_kib = most_resident_kib();
    auto opened = TraceFile::adopt(sparse_file());
    if (!opened) {
      return opened.error().what;
    }
    TracedFile traced("100.trace", {100, 5'000}, *std::move(opened));
    for (int pass = 0; pass < 2; ++pass) {
      if (!traced.read() || !traced.file().live_blocks()) {
        return std::string("cannot be read");
      }
    }
    const long used_mib = (most_resident_kib() - before_kib) / 1024;
    std::string text = fmt::format("{} sites", traced.last().sites.size());
    for (const SiteCounts& site : traced.last().sites) {
      text += fmt::format(", {} bytes in {} frames", site.live_bytes(),
                          traced.file().stack(site.node).size());
    }
    return text + (used_mib < 80 ? "" : fmt::format(", but {} MiB", used_mib));
  });

  EXPECT_EQ(answer, "2 sites, 4096 bytes in 2 frames, 8192 bytes in 1 frames");
}

}  // namespace
}  // namespace tidemark::reader
