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
#include "common/process_key.h"
#include "common/result.h"
#include "guard/resume_helper.h"

namespace tidemark::guard {

// Ends a process tree although it may fork faster than anybody can kill: everybody is stopped
// first, until a walk over /proc finds nobody new, then killed. Who belongs to the tree: the
// members that are given, their descendants, and whoever is in a session or process group that one
// of them leads. Everything is reserved when it is opened; kill() allocates nothing, takes no lock
// and waits for nobody. Never touches this process, its ancestors, kernel threads or pid 1. Not
// thread-safe.
class TreeKiller {
 public:
  struct Options {
    std::string proc_root = "/proc";
    // Children of this process belong to the tree as well if they have the mark of a launch:
    // orphans that a subreaper got.
    std::optional<pid_t> children_of;
    std::string launch_mark;
    std::size_t most_processes = 1U << 15U;  // on the machine; more are killed in several rounds
    ResumeHelper* resume = nullptr;          // for those that are stopped; outlives it
  };
  static Result<TreeKiller> open(const Options& options);

  struct Outcome {
    std::uint32_t killed = 0;   // got SIGKILL
    std::uint32_t refused = 0;  // may not be killed by us
    std::uint32_t left = 0;     // still there at the last walk, dying or refused
    std::uint32_t walks = 0;
  };
  Outcome kill(std::span<const ProcessKey> members);
  // How many of the tree run now.
  std::uint32_t count(std::span<const ProcessKey> members);
  // Whether all of a control group belong to the tree now: `procs` is its cgroup.procs. False where
  // that cannot be told. Allocates nothing.
  bool owns_group(const Fd& procs, std::span<const ProcessKey> members);

  // What must be in memory when kill() is called, for mlock(2).
  struct Region {
    const void* begin = nullptr;
    std::size_t bytes = 0;
  };
  std::vector<Region> regions() const;

 private:
  enum class Belongs : std::uint8_t { kUnknown, kYes, kNo };
  // One process at the last walk.
  struct Row {
    ProcessKey key;
    pid_t ppid = 0;
    pid_t group = 0;
    pid_t session = 0;
    bool has_ended = false;  // all of its threads have
    Belongs belongs = Belongs::kUnknown;
  };
  // A process of the tree, ever since kill() began.
  struct Member {
    ProcessKey key;
    bool is_stopped = false;
    bool is_killed = false;
    bool is_refused = false;
  };

  TreeKiller() = default;
  void begin(std::span<const ProcessKey> members);
  void walk();
  void add_row(pid_t pid);
  void find_own();
  bool is_own(pid_t pid) const;
  bool decide(Row& row);
  bool is_led_by_a_member(pid_t leader) const;
  bool is_adopted(const Row& row) const;
  Row* row_of(pid_t pid);
  const Row* row_of(pid_t pid) const;
  Member* member_of(const ProcessKey& key);
  const Member* member_with_pid(pid_t pid) const;
  Member* add_member(const ProcessKey& key);
  int stop(const ProcessKey& key);
  bool stop_newcomers(Outcome& outcome);
  void kill_members(Outcome& outcome);

  Options options_;
  Fd proc_;
  std::vector<Row> rows_;                 // its size is the room, `row_count_` the content
  std::vector<std::uint32_t> row_index_;  // by pid, open addressing; 0: empty, else row + 1
  std::vector<Member> members_;           // open addressing by pid; pid 0: empty
  std::vector<char> entries_;             // for getdents64
  std::vector<char> group_text_;          // cgroup.procs
  std::array<pid_t, 64> own_{};  // this process, those above it, and what else is not touched
  std::size_t own_count_ = 0;
  std::size_t row_count_ = 0;
  std::size_t member_count_ = 0;
};

}  // namespace tidemark::guard
