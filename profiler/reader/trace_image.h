// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/fd.h"
#include "common/io.h"
#include "common/result.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {

// Where the items of one table are in the file, checked against the file's real size.
class TableView {
 public:
  TableView() = default;
  explicit TableView(std::size_t item_bytes) : item_bytes_(item_bytes) {}

  // Items that the extents offer, whether they can be read or not.
  std::uint64_t capacity() const { return capacity_; }
  std::size_t item_bytes() const { return item_bytes_; }

  struct Piece {
    std::uint64_t first_item = 0;
    std::uint64_t items = 0;     // as listed
    std::uint64_t readable = 0;  // within the file
    std::uint64_t offset = 0;
  };
  void add(std::uint64_t offset, std::uint64_t items, std::uint64_t file_bytes);
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  std::size_t item_bytes_ = 1;
  std::uint64_t capacity_ = 0;
  std::vector<Piece> pieces_;
};

// The header at one moment, with what it says about the tables.
struct TraceHeader {
  std::unique_ptr<wire::Header> raw;
  std::uint64_t file_bytes = 0;
  std::uint64_t allocated_bytes = 0;  // of these: the memory that the file takes
  std::array<TableView, wire::kTables> tables;

  const TableView& table(wire::Table which) const {
    return tables[static_cast<std::size_t>(which)];
  }
  // Items handed out so far; never more than there is room for.
  std::uint64_t used(wire::Table which) const;
};

// Reads the header; kMalformed, kUnsupported, or kIo when it is not one. Extents that overlap or
// cannot be are malformed; those beyond the end of the file are listed as not readable.
Result<TraceHeader> read_trace_header(int fd);

// Reads the items [first, first + count) of a table into `out`; what cannot be read is zeroed.
// Returns how many items that were.
std::uint64_t read_items(int fd, const TableView& table, std::uint64_t first, std::uint64_t count,
                         void* out);

// The first item from `first` on that may hold something: those in a hole of the file are zeroes.
// More than there is when nothing follows.
std::uint64_t next_item_with_data(int fd, const TableView& table, std::uint64_t first);

// The size of a buffer through which `items` items are read, `most` at a time.
inline std::size_t buffer_items(std::uint64_t items, std::size_t most) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(items, most));
}

// Calls `visit(index of the first item, items)` for the items [first, end) of a table, a buffer
// full at a time; holes of the file are left out. Returns how many items could not be read; those
// are zeroes.
template <typename Item, typename Visit>
std::uint64_t for_each_chunk(int fd, const TableView& table, std::uint64_t first, std::uint64_t end,
                             std::vector<Item>& buffer, Visit&& visit) {
  std::uint64_t unread = 0;
  while ((first = next_item_with_data(fd, table, first)) < end) {
    const std::uint64_t count = std::min<std::uint64_t>(buffer.size(), end - first);
    unread += read_items(fd, table, first, count, buffer.data());
    visit(first, std::span<const Item>(buffer.data(), static_cast<std::size_t>(count)));
    first += count;
  }
  return unread;
}

// How much of a trace file we read at most, whatever it claims to hold.
inline constexpr std::uint64_t kMostModules = std::uint64_t{1} << 16U;
inline constexpr std::uint64_t kMostNodes = std::uint64_t{1} << 24U;
inline constexpr std::uint64_t kMostSites = std::uint64_t{1} << 22U;
inline constexpr std::uint64_t kMostBuckets = std::uint64_t{1} << 25U;  // of 8 blocks
inline constexpr std::uint64_t kMostRanges = std::uint64_t{1} << 22U;

// One past the last item that lies within the file.
inline std::uint64_t readable_end(const TableView& table) {
  std::uint64_t end = 0;
  for (const TableView::Piece& piece : table.pieces()) {
    end = std::max(end, piece.readable > 0 ? piece.first_item + piece.readable : 0);
  }
  return end;
}

// Items to read, and those in use that are beyond.
struct Bound {
  std::uint64_t end = 0;
  std::uint64_t beyond = 0;
};
inline Bound bounded(std::uint64_t used, std::uint64_t readable, std::uint64_t most) {
  const std::uint64_t end = std::min({used, readable, most});
  return {end, used - end};
}

}  // namespace tidemark::reader
