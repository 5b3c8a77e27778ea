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
  // `least_free_bytes`. Tidies up what runs that were killed have left there. Where others have
  // taken the names of all bases, in a folder beside one of them whose name nobody can know.
  static Result<TraceDirectory> create(const std::vector<std::string>& bases,
                                       std::uint64_t least_free_bytes = 16U << 20U);
  // For a process that runs already: where it can write, as it sees the file system. Of a process
  // of ours with our view that is one of `bases`.
  static Result<TraceDirectory> create_for(pid_t pid,
                                           const std::vector<std::string>& bases = trace_bases());
  // The folder of an earlier run that was made in such a place and has a trace file of the process;
  // its run has ended. nullopt: there is none.
  static std::optional<TraceDirectory> find_in_view_of(pid_t pid);
  ~TraceDirectory();
  TraceDirectory(TraceDirectory&& other) noexcept;
  TraceDirectory& operator=(TraceDirectory&&) = delete;

  const std::string& path() const { return path_; }
  // The same folder, as the process sees it that it was made for.
  const std::string& seen_as() const { return seen_as_; }
  // Whose files will be in it; nullopt: ours.
  std::optional<uid_t> owner() const { return owner_; }
  // It stays when this goes, until all its processes have exited and somebody tidies up.
  void keep() { is_kept_ = true; }

 private:
  TraceDirectory(std::string path, Fd lock);
  static Result<TraceDirectory> create_in_view_of(pid_t pid, uid_t uid, gid_t gid);
  static TraceDirectory make(Fd folder, Fd parent, Fd lock, std::string seen_as, uid_t owner);

  std::string path_;
  std::string seen_as_;
  std::optional<uid_t> owner_;
  bool is_kept_ = false;
  Fd folder_;  // of a folder elsewhere: what path() leads through
  Fd parent_;  // likewise, the folder that it is in
  Fd lock_;    // says that we are alive
};

// Takes over a folder whose run was killed, for as long as the descriptor is open: tracers in it
// record again. An error of EWOULDBLOCK: its run is alive; any other: it belongs to no run.
Result<Fd> adopt_trace_folder(const std::string& directory);

// Whether the run that made a folder has ended: what is in it rests until another run takes it
// over. Not of a folder that belongs to no run.
bool trace_folder_is_left(const std::string& directory);

// Whether a folder has a trace file of this living process, of this owner.
bool has_trace_of(const std::string& directory, uid_t owner, pid_t pid);

// The folder that holds a trace file of this living process; nullopt: the tracer is not in it.
std::optional<std::string> find_trace_of(pid_t pid, const std::vector<std::string>& bases);
// The same of any of these.
std::optional<std::string> find_trace_of_any(std::span<const pid_t> pids,
                                             const std::vector<std::string>& bases);

}  // namespace tidemark::reader
