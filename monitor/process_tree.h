// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "monitor/procfs/process_source.h"

namespace tidemark::monitor {

// What is watched.
struct TreeRoots {
  std::vector<ProcessKey> keys;  // each with all its descendants
  // Children of this process are roots if `adopts` says so: it is the subreaper of a command that
  // it started, so that orphans of it become its children. The process itself is never a member.
  std::optional<pid_t> children_of;
  std::function<bool(const ProcessKey& child)> adopts;
  bool everything = false;  // --system

  bool has_root(const ProcessEntry& entry) const;
};

// Which processes belong to the watched tree. Once a member, always a member: whoever loses its
// parent stays. Identity is (pid, start time), so a reused pid is a stranger. Pure bookkeeping, fed
// with process tables; not thread-safe.
class ProcessTree {
 public:
  // `self` is left out of every tree, with the processes that tidemark itself starts.
  ProcessTree(TreeRoots roots, pid_t self);

  struct Change {
    std::vector<ProcessEntry> started;  // parents before their children
    std::vector<ProcessKey> gone;
  };
  // From the whole process table: finds members wherever they are, and who has gone.
  Change update(std::span<const ProcessEntry> table);

  // From other sources, between two tables: a child that a member lists, a member that is gone.
  // add() says whether it was new.
  bool add(const ProcessEntry& entry);
  void remove(const ProcessKey& key);

  bool contains(const ProcessKey& key) const;
  // The member with this pid, if any.
  std::optional<ProcessKey> member_with_pid(pid_t pid) const;
  std::size_t size() const { return members_.size(); }
  // No root is left and none can come: the tree is finished once it is empty.
  bool empty() const { return members_.empty(); }

 private:
  using Index = std::unordered_map<pid_t, const ProcessEntry*>;
  bool belongs(const ProcessEntry& entry, const Index& index,
               std::unordered_map<pid_t, bool>& decided) const;
  bool left_behind_by_a_member(const ProcessEntry& entry) const;

  TreeRoots roots_;
  pid_t self_;
  bool seen_a_table_ = false;
  std::unordered_map<pid_t, ProcessKey> members_;
  std::unordered_set<pid_t> groups_;        // process groups led by present or past members
  std::uint64_t youngest_start_ticks_ = 0;  // of the last table: what starts later is new
};

}  // namespace tidemark::monitor
