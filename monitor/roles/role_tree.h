// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/units.h"
#include "monitor/roles/command.h"
#include "monitor/roles/role_rules.h"
#include "monitor/roles/roles.h"

// The working state of assign_roles(): nodes with their rule, refined pass by pass.
namespace tidemark::monitor {

inline constexpr std::size_t kNoNode = static_cast<std::size_t>(-1);

inline constexpr std::uint64_t kHeavyBytes = 32 * kMiB;   // less than this is no trainer
inline constexpr std::uint64_t kSmallBytes = 100 * kMiB;  // more than this does work of its own

struct RoleNode {
  const ProcessFacts* facts = nullptr;
  Command command;
  const RoleRule* rule = nullptr;  // of the process alone; nullptr when no rule matches
  std::size_t parent = kNoNode;
  std::size_t root = kNoNode;
  std::vector<std::size_t> children;

  Role role = Role::kOther;
  std::optional<int> rank;
  bool inferred = false;
  std::string_view reason;
  bool owns_workers = false;
  bool orphaned = false;  // a worker whose parent is not the process that started it

  bool is_worker() const { return role == Role::kCompileWorker || role == Role::kDataloaderWorker; }
  bool is_job() const { return role == Role::kTrainer || role == Role::kRank; }
  // No rule knows it and no pass has placed it yet: it may turn out to be the trainer.
  bool unplaced() const {
    return role == Role::kOther && (rule == nullptr || (rule->scope == Scope::kBelowJob &&
                                                        rule->match != Match::kCompiler));
  }
  bool matched(Match match) const { return rule != nullptr && rule->match == match; }
  bool is_session() const { return rule != nullptr && rule->scope == Scope::kSession; }
  bool is_server() const { return rule != nullptr && rule->scope == Scope::kServer; }

  void place(Role new_role, std::string_view why, bool guess) {
    role = new_role;
    reason = why;
    inferred = guess;
  }
};

struct RoleTree {
  std::vector<RoleNode> nodes;     // in the order of the facts
  std::vector<std::size_t> order;  // every node once, parents before children
  std::unordered_map<pid_t, std::size_t> by_pid;
  std::set<std::size_t> session_roots;  // of trees that are a machine or a desktop, not a job

  bool has_session(const RoleNode& node) const { return session_roots.contains(node.root); }
  bool any_child(const RoleNode& node, auto&& predicate) const {
    return std::any_of(node.children.begin(), node.children.end(),
                       [&](std::size_t child) { return predicate(nodes[child]); });
  }
};

// Joins the trees of one job: a batch system starts every rank on its own.
class RankTrees {
 public:
  // The tree that `facts` belongs to, which would otherwise be the root of the tree `own`: the
  // first of its job. A second process of the same rank is not part of the job: a shell in a step
  // hands its variables to all that it starts.
  std::size_t tree_of(const ProcessFacts& facts, std::size_t own);

 private:
  struct Job {
    std::size_t first = kNoNode;
    std::set<int> ranks;
  };
  std::map<std::string, Job> jobs_;
};

// Whether this worker, which is known by its name, was started by another process than `parent`,
// which has adopted it since.
bool is_adopted(const RoleNode& worker, const RoleNode& parent);

// Places the workers that only their neighbours show, then marks who owns workers.
void place_workers(RoleTree& tree);

// Names trainers, ranks and, where ranks were started by multiprocessing, their launcher.
void place_trainers(RoleTree& tree);

}  // namespace tidemark::monitor
