// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/result.h"
#include "profiler/reader/trace_file.h"
#include "profiler/reader/trace_image.h"
#include "profiler/reader/trace_values.h"

namespace tidemark::reader {

// The least and the greatest epoch of each kind in which live blocks were allocated.
class EpochRange {
 public:
  void add(std::uint32_t epoch);

  struct Ends {
    std::uint32_t least = 0;
    std::uint32_t most = 0;
  };
  const std::optional<Ends>& seconds() const { return seconds_; }
  const std::optional<Ends>& steps() const { return steps_; }

 private:
  std::optional<Ends> seconds_;
  std::optional<Ends> steps_;
};

// Sorts epochs of allocation into at most kMostAgeBuckets buckets of equal width over the run:
// seconds from 0, steps from the first that a live block has (a job that was resumed begins with a
// large one), both up to now. A run that learned of its steps late has both, the seconds being the
// older.
class AgeScale {
 public:
  // `now` is the epoch in which blocks are allocated at present. No live block is younger.
  AgeScale(const EpochRange& seen, std::uint32_t now);

  const std::vector<AgeBucket>& buckets() const { return buckets_; }
  // Epochs outside the scale count to the bucket at its end. Always less than kMostAgeBuckets.
  std::size_t bucket_of(std::uint32_t epoch) const;

 private:
  struct Part {
    std::size_t first_bucket = 0;
    std::size_t buckets = 0;  // 0: there are no epochs of this kind
    std::uint32_t least = 0;
    std::uint32_t width = 1;
  };
  Part add_part(std::uint32_t least, std::uint32_t most, std::size_t most_buckets, bool is_step);

  std::vector<AgeBucket> buckets_;
  Part seconds_;
  Part steps_;
};

// One scan of the live table and the ranges, as TraceFile::live_blocks() promises.
LiveScan scan_live_blocks(int fd, const TraceHeader& header, const LiveScanOptions& options);

}  // namespace tidemark::reader
