// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "common/process_key.h"
#include "common/records.h"
#include "common/result.h"

// The marker files of a process: where they are and what they hold; both as in api/tidemark.h.
namespace tidemark::monitor {

// Seen from outside; the process may live in a container with other pids, users and mounts.
struct MarkerPlace {
  std::string base;       // the process's /dev/shm, by a path that works for us
  std::string directory;  // in it: "tidemark-1000"
  uid_t owner = 0;        // who must own directory and files
  pid_t inner_pid = 0;    // the pid that the process itself sees
  std::string prefix;     // of its files: "141495-153612-4026531836."
};

// kPermission when we may not read the process, kGone when it has ended.
Result<MarkerPlace> locate_markers(const ProcessKey& key);

// What the name of a marker file, or of the draft of one, says.
struct MarkerFileName {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::uint64_t pid_namespace = 0;  // inode number
  bool draft = false;
};
std::optional<MarkerFileName> parse_marker_file_name(std::string_view name);

// The user id inside a user namespace for one outside, from the text of /proc/PID/uid_map.
std::optional<uid_t> map_uid_inside(std::string_view uid_map, uid_t outside);

// Inode number of the pid namespace that /proc/`who` is in ("self" or a pid).
Result<std::uint64_t> pid_namespace_of(const std::string& who);

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
// after the file was removed and the process has exited. Not thread-safe.
class MarkerRing {
 public:
  // `inner_pid` is the pid in the process's own namespace. kMalformed when the file is no ring,
  // kUnsupported when a later version wrote it, kNotFound when it is of another process.
  static Result<MarkerRing> open(Fd file, pid_t inner_pid, std::uint64_t start_ticks);

  enum class Pass {
    kMore,  // a record that is reserved but not yet published is waited for, once
    kLast,  // the writer has exited: such a record is lost
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
