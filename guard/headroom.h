// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/fd.h"
#include "common/records.h"

namespace tidemark::guard {

// What a limit counts.
enum class LimitKind {
  kControlGroup,  // of a control group: anonymous, shared and swapped memory, and kernel memory
  kMachine,       // physical memory and swap that nobody has
  kAddressSpace,  // RLIMIT_AS of one process
  kDataSize,      // RLIMIT_DATA of one process
  kGiven,         // --limit: the footprint of the tree
};

// One limit that a job can run into, for people.
struct WatchedLimit {
  LimitKind kind = LimitKind::kMachine;
  std::uint64_t bytes = 0;
  std::string source;  // "cgroup v2 memory.max of /user.slice/job", "physical memory", ...
};

// How far away the nearest limit is.
struct Headroom {
  std::int64_t free_bytes = 0;  // below 0: already beyond it
  std::uint64_t limit_bytes = 0;
  std::uint64_t keep_free_bytes = 0;
  std::size_t limit = 0;  // index into HeadroomReader::limits()

  // Until what is to be kept free is touched.
  std::int64_t to_spare_bytes() const {
    return free_bytes - static_cast<std::int64_t>(keep_free_bytes);
  }
};

// --keep-free, or 5 % of each limit and no more than 2 GiB.
struct KeepFree {
  std::optional<std::uint64_t> bytes;

  std::uint64_t of(std::uint64_t limit_bytes) const;
};

// The footprint of a tree between two samples: what the sample said, and what the largest members
// have gained since. Reading allocates nothing. Not thread-safe.
//
// A gain counts from the memory that the same sample saw. A base that is read later than the
// footprint would count a spike twice that came down in between, and the job would be stopped for
// memory that it does not hold. The footprint may be older still (GroupSample::footprint_held), so
// that the answer also stays between two bounds that are read anew each time.
class TreeUse {
 public:
  static constexpr std::size_t kMostMembers = 64;

  TreeUse() = default;
  // `members`: those of the sample, the largest first.
  TreeUse(const std::string& root, std::uint64_t footprint_bytes,
          std::span<const ProcessSample> members);

  std::uint64_t read() const;

 private:
  struct Member {
    Fd statm;
    std::uint64_t base_bytes = 0;
  };
  std::uint64_t footprint_bytes_ = 0;
  std::uint64_t rest_bytes_ =
      0;  // what is not read again, with shared pages counted more than once
  std::vector<Member> members_;
};

// Reads how far each limit is away, on descriptors that are kept and into buffers that are there:
// read() and pressure() allocate nothing, whatever happens. Not thread-safe.
class HeadroomReader {
 public:
  struct Options {
    std::string root;  // "" but for tests, which give a folder that holds proc/ and sys/fs/cgroup/
    std::vector<pid_t> groups_of;              // whose control groups
    std::vector<pid_t> resources_of;           // whose RLIMIT_AS and RLIMIT_DATA
    std::optional<std::uint64_t> given_bytes;  // --limit
    KeepFree keep_free;
  };
  explicit HeadroomReader(const Options& options);

  const std::vector<WatchedLimit>& limits() const { return limits_; }

  // The limit with the least to spare. nullopt: none could be read. `tree` is what --limit counts.
  std::optional<Headroom> read(const TreeUse* tree);
  // Percent of the last 10 s in which everybody waited for memory: of the machine or of the control
  // groups, whichever is higher. nullopt: the kernel does not tell.
  std::optional<double> pressure();

 private:
  // The files of one limit.
  struct Files {
    Fd usage;  // memory.current, memory.usage_in_bytes; statm of a process
    Fd stat;   // memory.stat
    Fd swap;   // memory.swap.current
    bool v2 = false;
  };
  void add(WatchedLimit limit, Files files);
  void add_groups(const std::string& root, pid_t pid);
  void add_machine(const std::string& root);
  void add_resources(const std::string& root, pid_t pid);

  std::optional<std::int64_t> free_bytes(std::size_t limit, const TreeUse* tree);
  std::optional<std::int64_t> free_in_group(const WatchedLimit& limit, const Files& files,
                                            std::uint64_t keep_free_bytes);
  std::optional<std::int64_t> free_on_machine(const Files& files);

  KeepFree keep_free_;
  std::vector<WatchedLimit> limits_;
  std::vector<Files> files_;         // of each limit
  std::vector<std::string> groups_;  // directories that were looked at
  std::vector<Fd> pressures_;
  std::array<char, 16U << 10U> buffer_{};
};

}  // namespace tidemark::guard
