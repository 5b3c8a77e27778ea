// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/trace_image.h"

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace tidemark::reader {
namespace {

using wire::Header;
using wire::Table;

Status check_preamble(const Header& header) {
  if (header.magic != wire::kMagic) {
    return Error{Errc::kMalformed, "not a trace file of Tidemark"};
  }
  if (header.format_version != wire::kFormatVersion) {
    return Error{Errc::kUnsupported,
                 "the trace file has format version " + std::to_string(header.format_version) +
                     ", this program reads version " + std::to_string(wire::kFormatVersion)};
  }
  if (header.header_bytes != wire::kHeaderBytes) {
    return Error{Errc::kMalformed, "the header of the trace file has a wrong size"};
  }
  return ok();
}

struct Stretch {
  std::uint64_t begin;
  std::uint64_t end;
};

// The listed extents of one table; false when one of them cannot be.
bool list_extents(const wire::TableDirectory& directory, std::uint64_t file_bytes, TableView& view,
                  std::vector<Stretch>& all) {
  const std::uint32_t count = directory.extents.load(std::memory_order_relaxed);
  if (count > wire::kMaxExtents) {
    return false;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const wire::Extent& extent = directory.extent[i];
    std::uint64_t bytes = 0;
    std::uint64_t end = 0;
    if (extent.offset < wire::kHeaderBytes ||
        __builtin_mul_overflow(extent.items, std::uint64_t{view.item_bytes()}, &bytes) ||
        __builtin_add_overflow(extent.offset, bytes, &end) ||
        end > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) {
      return false;
    }
    view.add(extent.offset, extent.items, file_bytes);
    all.push_back({extent.offset, end});
  }
  return true;
}

bool overlap(std::vector<Stretch>& all) {
  std::sort(all.begin(), all.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].begin < all[i - 1].end) {
      return true;
    }
  }
  return false;
}

}  // namespace

void TableView::add(std::uint64_t offset, std::uint64_t items, std::uint64_t file_bytes) {
  const std::uint64_t room = offset < file_bytes ? (file_bytes - offset) / item_bytes_ : 0;
  pieces_.push_back({capacity_, items, std::min(items, room), offset});
  capacity_ += items;  // cannot wrap: the extents lie one beside the other in 63 bits
}

std::uint64_t TraceHeader::used(Table which) const {
  const std::uint64_t handed_out =
      raw->table[static_cast<std::size_t>(which)].used.load(std::memory_order_relaxed);
  return std::min(handed_out, table(which).capacity());
}

Result<TraceHeader> read_trace_header(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return system_error("trace file", errno);
  }
  TraceHeader header;
  header.raw = std::make_unique<Header>();
  constexpr std::uint64_t kBlockBytes = 512;
  header.file_bytes = static_cast<std::uint64_t>(status.st_size);
  header.allocated_bytes =
      std::min(header.file_bytes, static_cast<std::uint64_t>(status.st_blocks) * kBlockBytes);
  const std::span<char> bytes(reinterpret_cast<char*>(header.raw.get()), sizeof(Header));
  TIDEMARK_TRY_ASSIGN(auto got, pread_full(fd, bytes));
  if (header.file_bytes < wire::kHeaderBytes || got < sizeof(Header)) {
    return Error{Errc::kMalformed, "the trace file is shorter than its header"};
  }
  TIDEMARK_TRY(check_preamble(*header.raw));
  std::vector<Stretch> all;
  for (std::size_t i = 0; i < wire::kTables; ++i) {
    header.tables[i] = TableView(wire::item_bytes(static_cast<Table>(i)));
    if (!list_extents(header.raw->table[i], header.file_bytes, header.tables[i], all)) {
      return Error{Errc::kMalformed,
                   "table " + std::to_string(i) + " of the trace file is in an impossible place"};
    }
  }
  if (overlap(all)) {
    return Error{Errc::kMalformed, "tables of the trace file overlap"};
  }
  return header;
}

std::uint64_t next_item_with_data(int fd, const TableView& table, std::uint64_t first) {
  for (const TableView::Piece& piece : table.pieces()) {
    if (first >= piece.first_item + piece.items) {
      continue;
    }
    first = std::max(first, piece.first_item);
    const std::uint64_t in_piece = first - piece.first_item;
    if (in_piece >= piece.readable) {
      return first;  // whoever reads it sees that it cannot be read
    }
    const std::uint64_t offset = piece.offset + in_piece * table.item_bytes();
    const off_t data = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
    if (data < 0 && errno != ENXIO) {
      return first;  // this file system does not tell
    }
    const std::uint64_t next =
        data < 0 ? piece.readable
                 : (static_cast<std::uint64_t>(data) - piece.offset) / table.item_bytes();
    if (next < piece.readable) {
      return piece.first_item + std::max(next, in_piece);
    }
    if (piece.readable < piece.items) {
      return piece.first_item + piece.readable;
    }
  }
  return std::numeric_limits<std::uint64_t>::max();
}

std::uint64_t read_items(int fd, const TableView& table, std::uint64_t first, std::uint64_t count,
                         void* out) {
  auto* const to = static_cast<char*>(out);
  const std::size_t item_bytes = table.item_bytes();
  std::memset(to, 0, static_cast<std::size_t>(count) * item_bytes);
  std::uint64_t read = 0;
  for (const TableView::Piece& piece : table.pieces()) {
    const std::uint64_t begin = std::max(first, piece.first_item);
    const std::uint64_t end = std::min(first + count, piece.first_item + piece.readable);
    if (begin >= end) {
      continue;
    }
    const std::span<char> target(to + (begin - first) * item_bytes,
                                 static_cast<std::size_t>(end - begin) * item_bytes);
    const std::uint64_t offset = piece.offset + (begin - piece.first_item) * item_bytes;
    const auto got = pread_full(fd, target, static_cast<off_t>(offset));
    const std::size_t whole = got ? *got / item_bytes : 0;
    std::memset(target.data() + whole * item_bytes, 0, target.size() - whole * item_bytes);
    read += whole;
  }
  return count - read;
}

}  // namespace tidemark::reader
