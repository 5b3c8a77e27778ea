// SPDX-License-Identifier: Apache-2.0
#include "monitor/process_tree.h"

#include <algorithm>
#include <utility>

namespace tidemark::monitor {

bool TreeRoots::has_root(const ProcessEntry& entry) const {
  constexpr pid_t kThreadDaemon = 2;  // kthreadd; its children are kernel threads, without memory
  const bool kernel = entry.key.pid == kThreadDaemon || entry.ppid == kThreadDaemon;
  return (everything && !kernel) || std::find(keys.begin(), keys.end(), entry.key) != keys.end() ||
         (children_of && entry.ppid == *children_of && adopts(entry.key));
}

ProcessTree::ProcessTree(TreeRoots roots, pid_t self) : roots_(std::move(roots)), self_(self) {}

bool ProcessTree::contains(const ProcessKey& key) const {
  const auto it = members_.find(key.pid);
  return it != members_.end() && it->second == key;
}

std::optional<ProcessKey> ProcessTree::member_with_pid(pid_t pid) const {
  const auto it = members_.find(pid);
  return it == members_.end() ? std::nullopt : std::optional(it->second);
}

bool ProcessTree::add(const ProcessEntry& entry) {
  if (entry.key.pid == self_ || contains(entry.key)) {
    return false;
  }
  members_[entry.key.pid] = entry.key;
  if (entry.process_group == entry.key.pid) {
    groups_.insert(entry.key.pid);
  }
  return true;
}

void ProcessTree::remove(const ProcessKey& key) {
  if (contains(key)) {
    members_.erase(key.pid);
  }
}

// A member forked, its child forked again and ended, all between two tables: the grandchild has
// lost its way to us. It still is in a process group that a member leads (the kernel does not hand
// out a pid that is in use as a group), and it is younger than our last table.
bool ProcessTree::left_behind_by_a_member(const ProcessEntry& entry) const {
  return seen_a_table_ && entry.key.start_ticks >= youngest_start_ticks_ &&
         groups_.contains(entry.process_group);
}

// Follows the parents up until a decision; every process on the way gets the same answer.
bool ProcessTree::belongs(const ProcessEntry& entry, const Index& index,
                          std::unordered_map<pid_t, bool>& decided) const {
  std::vector<pid_t> path;
  const ProcessEntry* at = &entry;
  bool answer = false;
  while (true) {
    if (const auto known = decided.find(at->key.pid); known != decided.end()) {
      answer = known->second;
      break;
    }
    decided.emplace(at->key.pid, false);  // a table read in pieces may hold a cycle
    path.push_back(at->key.pid);
    if (at->key.pid == self_) {
      break;
    }
    if (contains(at->key) || roots_.has_root(*at) || left_behind_by_a_member(*at)) {
      answer = true;
      break;
    }
    const auto parent = index.find(at->ppid);
    // A parent that is younger than its child has taken over the pid of the real one.
    if (parent == index.end() || parent->second->key.start_ticks > at->key.start_ticks) {
      break;
    }
    at = parent->second;
  }
  for (const pid_t pid : path) {
    decided[pid] = answer;
  }
  return answer;
}

ProcessTree::Change ProcessTree::update(std::span<const ProcessEntry> table) {
  Index index;
  index.reserve(table.size());
  for (const ProcessEntry& entry : table) {
    index[entry.key.pid] = &entry;
  }

  Change change;
  for (const auto& [pid, key] : members_) {
    const auto it = index.find(pid);
    if (it == index.end() || it->second->key != key) {
      change.gone.push_back(key);
    }
  }
  for (const ProcessKey& key : change.gone) {
    remove(key);
  }

  std::unordered_map<pid_t, bool> decided;
  decided.reserve(table.size());
  for (const ProcessEntry& entry : table) {
    if (!contains(entry.key) && belongs(entry, index, decided)) {
      change.started.push_back(entry);
    }
  }
  for (const ProcessEntry& entry : change.started) {
    add(entry);
  }
  std::unordered_set<pid_t> groups;  // forget the groups that have ended
  for (const ProcessEntry& entry : table) {
    youngest_start_ticks_ = std::max(youngest_start_ticks_, entry.key.start_ticks);
    if (groups_.contains(entry.process_group)) {
      groups.insert(entry.process_group);
    }
  }
  groups_ = std::move(groups);
  seen_a_table_ = true;
  std::sort(change.started.begin(), change.started.end(), [](const auto& a, const auto& b) {
    return std::pair(a.key.start_ticks, a.key.pid) < std::pair(b.key.start_ticks, b.key.pid);
  });
  return change;
}

}  // namespace tidemark::monitor
