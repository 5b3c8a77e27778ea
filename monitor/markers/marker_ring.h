// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/fd.h"
#include "common/records.h"
#include "common/result.h"

namespace tidemark::monitor {

// A record of a ring, checked, in the clock of its writer (CLOCK_MONOTONIC).
struct RingMarker {
  std::uint64_t time_ns = 0;
  MarkerKind kind = MarkerKind::kStep;
  std::int64_t value = 0;
  std::string name;  // raw bytes
};

// One marker file of one process (layout: api/tidemark.h). The file belongs to the target, which
// may write, truncate or corrupt it at any moment: it is read with pread(2) only, because a mapping
// would kill us with SIGBUS, and nothing in it is believed unchecked. The descriptor stays readable
// after the file was removed and the process has died. Not thread-safe.
class MarkerRing {
 public:
  // `inner_pid` is the pid in the process's own namespace. kMalformed when the file is no ring,
  // kUnsupported when a later version wrote it, kNotFound when it is of another process.
  static Result<MarkerRing> open(Fd file, pid_t inner_pid, std::uint64_t start_ticks);

  enum class Pass {
    kMore,  // a record that is reserved but not yet published is waited for, once
    kLast,  // the writer is dead: such a record is lost
  };
  // Appends what was published since the last call; the first call gives all that the ring holds.
  void read(Pass pass, std::vector<RingMarker>& out);

  // The latest step and epoch that the header knows, for rings whose records of them are gone.
  std::optional<RingMarker> latest(MarkerKind kind) const;

  // Records that were overwritten or damaged before we could read them, since the last call.
  std::uint64_t take_lost();

 private:
  MarkerRing(Fd file, std::uint32_t capacity);

  // Reads one stretch of records up to `next`; false when it must stop before `next`.
  bool read_chunk(std::uint64_t next, Pass pass, std::vector<RingMarker>& out);
  // True when the writers may be about to overwrite record `index`.
  bool overwritten(std::uint64_t index, std::uint64_t next) const;
  std::optional<std::uint64_t> next_index() const;

  Fd file_;
  std::uint32_t capacity_;
  std::uint64_t position_ = 0;  // first record that was not read yet
  bool fresh_ = true;
  std::optional<std::uint64_t> awaited_;  // unpublished record at which the last pass stopped
  std::uint64_t lost_ = 0;
};

}  // namespace tidemark::monitor
