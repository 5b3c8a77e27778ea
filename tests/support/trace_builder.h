// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/wire/trace_layout.h"

namespace tidemark::tests {

// What a site is to say; bytes and whole blocks.
struct TraceSite {
  std::uint32_t node = 0;
  wire::SiteKind kind = wire::SiteKind::kHeap;
  std::uint64_t alloc_bytes = 0;
  std::uint64_t alloc_blocks = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t free_blocks = 0;
  std::uint64_t peak_live_bytes = 0;
  std::uint64_t temporary_blocks = 0;
};

// Makes the bytes of a trace file as the tracer would write them, or as no honest tracer would.
class TraceBuilder {
 public:
  // A process that records exactly: pid 100, child of 99, started at tick 5000, created at 10^9 ns.
  TraceBuilder();

  wire::Header& header() { return *header_; }
  // The rows, to be damaged.
  wire::Module& module(std::uint32_t index) { return modules_.at(index); }
  wire::StackNode& node(std::uint32_t index) { return nodes_.at(index); }
  wire::Site& site(std::uint32_t index) { return sites_.at(index); }
  wire::LiveBucket& bucket(std::size_t index) { return buckets_.at(index); }
  wire::PythonCode& code(std::uint32_t index) { return codes_.at(index); }

  // Index into the header's periods; 0 is exact.
  std::uint8_t add_period(std::uint64_t bytes);
  std::uint32_t add_module(std::string_view path, std::uint64_t begin, std::uint64_t end,
                           std::uint64_t load_bias, std::string_view build_id_bytes = {});
  std::uint32_t add_node(std::uint32_t parent, std::uint64_t value,
                         wire::NodeKind kind = wire::NodeKind::kNative);
  // A code object of Python 3.`minor`.
  std::uint32_t add_code(std::string_view file, std::string_view name, std::string_view lines,
                         std::uint32_t first_line, std::uint16_t minor);
  // A stack of its own, innermost frame first; returns the node of that frame.
  std::uint32_t add_stack(std::initializer_list<std::uint64_t> innermost_first);
  std::uint32_t add_site(const TraceSite& site);
  void add_block(std::uint64_t address, std::uint64_t size_bytes, std::uint32_t site,
                 std::uint32_t epoch = 0, std::uint8_t period = 0);
  void add_range(std::uint64_t begin, std::uint64_t bytes, std::uint32_t site,
                 std::uint32_t epoch = 0);
  // Room in the live table; a power of two. 16 unless told. Before the first block.
  void set_live_buckets(std::size_t buckets);
  // Every table in this many extents (as far as it has items for them), with other tables' between.
  void set_extents(std::size_t extents) { extents_ = extents; }
  // Called with the finished header before it is written.
  void damage(std::function<void(wire::Header&)> how) { damage_ = std::move(how); }

  std::string bytes();

 private:
  std::string table_bytes(wire::Table table) const;
  std::uint32_t add_string(std::string_view text);

  std::unique_ptr<wire::Header> header_;
  std::string strings_;
  std::deque<wire::Module> modules_;
  std::deque<wire::StackNode> nodes_;
  std::deque<wire::Site> sites_;
  std::deque<wire::LiveBucket> buckets_;
  std::deque<wire::MapRange> ranges_;
  std::deque<wire::PythonCode> codes_;
  std::size_t extents_ = 1;
  std::function<void(wire::Header&)> damage_;
};

}  // namespace tidemark::tests
