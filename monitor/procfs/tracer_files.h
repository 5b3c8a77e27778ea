// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>

namespace tidemark::monitor {

// What the allocation tracer itself holds in the processes that it is in: the file of each one is
// mapped there and counts as its shared memory. It lies in a folder below /dev/shm/tidemark-UID and
// bears the pid; those of other users, and in other pid namespaces, are not known. Not thread-safe.
class TracerFiles {
 public:
  // `shm` is "/dev/shm" but for tests.
  TracerFiles(const std::string& shm, uid_t uid);

  // Lists them; a few microseconds when nobody is traced.
  void read();
  // 0: the tracer is not in it.
  std::uint64_t bytes_of(pid_t pid) const;

 private:
  struct Trace {
    std::uint64_t created_ns = 0;
    std::uint64_t bytes = 0;
  };

  void read_folder(int parent, const char* folder);

  std::string base_;
  std::unordered_map<pid_t, Trace> traces_;  // after an exec: the newer one
};

}  // namespace tidemark::monitor
