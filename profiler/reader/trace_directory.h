// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/fd.h"
#include "common/result.h"

namespace tidemark::reader {

// Where trace files may be, the best place first: shared memory, the user's run folder, the folder
// for temporary files. Each is a private folder of the user below it ("/dev/shm/tidemark-1000").
std::vector<std::string> trace_bases();

// The folder of one run, for the tracers of its processes to put their files in. Private (0700),
// and removed with all its content at the end: a process that still runs keeps its file, without a
// name.
class TraceDirectory {
 public:
  // In the first of `bases` that can be used and is roomy (a container may have a /dev/shm of 64
  // MiB, which its programs need); where none is, in the one with most room, of at least
  // `least_free_bytes`. Tidies up what runs that were killed have left there.
  static Result<TraceDirectory> create(const std::vector<std::string>& bases,
                                       std::uint64_t least_free_bytes = 16U << 20U);
  ~TraceDirectory();
  TraceDirectory(TraceDirectory&& other) noexcept;
  TraceDirectory& operator=(TraceDirectory&&) = delete;

  const std::string& path() const { return path_; }

 private:
  TraceDirectory(std::string path, Fd lock);

  std::string path_;
  Fd lock_;  // says that we are alive
};

// Takes over a folder whose run was killed, for as long as the descriptor is open: tracers in it
// record again. nullopt: it belongs to no run, or to one that is alive.
std::optional<Fd> adopt_trace_folder(const std::string& directory);

// The folder that holds a trace file of this living process; nullopt: the tracer is not in it.
std::optional<std::string> find_trace_of(pid_t pid, const std::vector<std::string>& bases);
// The same of any of these.
std::optional<std::string> find_trace_of_any(std::span<const pid_t> pids,
                                             const std::vector<std::string>& bases);

}  // namespace tidemark::reader
