// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tidemark::heap {

// How much more memory a process can get before the kernel ends one for the lack of it: what its
// control groups and the machine have left. Page cache counts as left, the kernel gives it up.
class MemoryRoom {
 public:
  struct Left {
    std::uint64_t bytes = 0;
    std::string of;  // "cgroup v2 memory.max of /job", "physical memory"
  };

  // `root` is "" but for tests, which give a folder that holds proc/ and sys/fs/cgroup/.
  static MemoryRoom of(const std::string& root, pid_t pid);

  // The least of all; nullopt: none of it can be seen.
  std::optional<Left> left() const;

 private:
  struct Group {
    std::string directory;
    std::uint64_t limit_bytes = 0;
    std::string source;
  };

  std::string root_;
  bool is_v2_ = false;
  std::vector<Group> groups_;  // those with a limit
};

// What copying a process may take, and what there is.
struct CopyDemand {
  std::uint64_t page_table_bytes = 0;  // of the process; the copy has as many
  // Memory that would be there twice if the process wrote to all of it as long as the copy lives.
  std::uint64_t writable_bytes = 0;
  // What the kernel may be asked to reserve for the copy. Only where it reserves all.
  std::uint64_t reserved_bytes = 0;
};
CopyDemand copy_demand(const std::string& root, pid_t pid);

// Why there is too little room for a copy, in words; empty: there is enough.
std::string why_no_room(const CopyDemand& demand, const std::optional<MemoryRoom::Left>& left);
// The same where the kernel reserves all memory (vm.overcommit_memory 2) that it promises: others
// would be refused theirs. Empty elsewhere.
std::string why_no_promise(const std::string& root, const CopyDemand& demand);

}  // namespace tidemark::heap
