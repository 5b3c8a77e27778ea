// SPDX-License-Identifier: Apache-2.0
// How much of a trace file we read at most, whatever it claims to hold.
#pragma once

#include <algorithm>
#include <cstdint>

#include "profiler/reader/trace_image.h"

namespace tidemark::reader {

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
