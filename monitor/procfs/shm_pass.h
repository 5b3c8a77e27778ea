// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "monitor/procfs/kernel_text.h"
#include "monitor/procfs/shm_holders.h"
#include "monitor/procfs/shm_makers.h"

namespace tidemark::monitor {

// What the name of a file in /dev/shm tells about its maker.
struct ShmName {
  std::string_view maker;    // "torch", "nccl", ...; "" when the pattern is not known
  std::optional<pid_t> pid;  // of the maker, in the maker's own pid namespace
};

// `path` is relative to /dev/shm; its first component decides.
ShmName read_shm_name(std::string_view path);

// Files of our own (the marker rings), which are no leak of the job.
bool is_own_shm_file(std::string_view path);

// What a regular file in a folder is; nullopt for anything else, and for what has gone.
struct ShmFile {
  std::uint64_t allocated_bytes = 0;
  std::int64_t created_wall_s = 0;  // not later than this
  ino_t inode = 0;
  uid_t uid = 0;
  dev_t device = 0;
};
std::optional<ShmFile> read_shm_file(int directory, const char* name);

// A named file in /dev/shm.
struct ShmSegment {
  std::string path;  // below /dev/shm, raw bytes
  std::string_view maker;
  std::uint64_t allocated_bytes = 0;
  std::int64_t created_wall_s = 0;  // not later than this
  ino_t inode = 0;
  uid_t uid = 0;
  std::optional<pid_t> owner_pid;   // from the name
  std::optional<bool> owner_alive;  // false also when its pid belongs to a younger process now
  std::optional<bool> held;         // some process maps it or has it open; unknown when the
                                    // kernel does not let us read all that could
  bool is_bounded = false;          // unknown, but ShmPass::hidden_bytes() is all that can be held
  bool is_of_job = false;           // named after a process of the job, or held by one in this pass
};

// One pass over /dev/shm and the processes that hold what is in it, in small steps: with many
// segments or processes the whole costs too much for one tick. Not thread-safe.
class ShmPass {
 public:
  // `own_uid` 0 stands for somebody who may read every process. `job` and `search`, of the same
  // /proc, outlive the pass. Without a job no segment is of the job; without a search all processes
  // are searched anew.
  ShmPass(const std::string& directory, std::string proc_root, uid_t own_uid,
          const ShmMakers* job = nullptr, HolderSearch* search = nullptr);

  // Does a bit of work (well below a millisecond but for a process with many mappings). True when
  // there is nothing left to do.
  bool step();

  // False when there is no such folder or we may not list it.
  bool readable() const { return readable_; }
  // After the last step.
  const std::vector<ShmSegment>& segments() const { return segments_; }
  // Files beyond the first 16384: counted, but not searched for.
  std::uint64_t unexamined_segments() const { return unexamined_segments_; }
  std::uint64_t unexamined_bytes() const { return unexamined_bytes_; }
  // How much shared memory those processes have that could be holders and refuse to be read.
  std::uint64_t hidden_bytes() const { return hidden_bytes_; }

 private:
  struct Level {
    DirectoryStream stream;
    std::string path;  // with a trailing slash; "" for /dev/shm itself
  };

  void list_some();
  void list_entry(const Level& level, const char* name);
  void add_file(std::string path, const ShmFile& file, const char* name);
  void find_processes();
  void search_process(pid_t pid);
  void find_unheld();
  std::optional<bool> is_held(const ShmSegment& segment) const;
  bool is_alive(pid_t pid, std::int64_t since_wall_s);
  bool is_of_job(pid_t pid) const { return job_ != nullptr && job_->is_running(pid); }

  std::string proc_root_;
  uid_t own_uid_;
  const ShmMakers* job_;
  std::optional<HolderSearch> own_search_;
  HolderSearch* search_;
  std::int64_t boot_wall_s_;
  std::vector<Level> levels_;
  std::vector<ShmSegment> segments_;
  std::uint64_t unexamined_segments_ = 0;
  std::uint64_t unexamined_bytes_ = 0;
  std::uint64_t hidden_bytes_ = 0;
  WantedFiles wanted_;
  bool readable_ = false;
  bool processes_listed_ = true;
  bool searches_ = false;    // the processes to search are known
  std::vector<pid_t> pids_;  // still to search, from the back: first those of the job
  std::unordered_set<uid_t> refused_uids_;
  std::unordered_map<pid_t, std::optional<std::int64_t>> start_wall_s_;  // of owners; memo
};

}  // namespace tidemark::monitor
