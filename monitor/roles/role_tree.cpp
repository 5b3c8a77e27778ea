// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/role_tree.h"

#include <unordered_map>

namespace tidemark::monitor {
namespace {

// Parents before children. A snapshot that is torn by pid reuse may hold a cycle of parents: the
// first of its members is then taken for a root.
void put_in_order(RoleTree& tree) {
  std::vector<bool> seen(tree.nodes.size(), false);
  std::vector<std::size_t> stack;
  const auto visit = [&](std::size_t root) {
    stack.push_back(root);
    while (!stack.empty()) {
      const std::size_t at = stack.back();
      stack.pop_back();
      if (seen[at]) {
        continue;
      }
      seen[at] = true;
      tree.nodes[at].root = root;
      tree.order.push_back(at);
      const auto& children = tree.nodes[at].children;
      stack.insert(stack.end(), children.rbegin(), children.rend());
    }
  };
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    if (tree.nodes[i].parent == kNoNode) {
      visit(i);
    }
  }
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    if (!seen[i]) {
      auto& siblings = tree.nodes[tree.nodes[i].parent].children;
      std::erase(siblings, i);
      tree.nodes[i].parent = kNoNode;
      visit(i);
    }
  }
}

}  // namespace

std::size_t RankTrees::tree_of(const ProcessFacts& facts, std::size_t own) {
  if (facts.job.empty() || !facts.rank) {
    return own;
  }
  Job& job = jobs_.try_emplace(facts.job, Job{own, {}}).first->second;
  return job.ranks.insert(*facts.rank).second ? job.first : own;
}

RoleTree build_role_tree(std::span<const ProcessFacts> facts) {
  RoleTree tree;
  tree.nodes.resize(facts.size());
  tree.order.reserve(facts.size());
  std::unordered_map<pid_t, std::size_t> by_pid;
  by_pid.reserve(facts.size());
  for (std::size_t i = 0; i < facts.size(); ++i) {
    by_pid.emplace(facts[i].key.pid, i);
  }
  for (std::size_t i = 0; i < facts.size(); ++i) {
    RoleNode& node = tree.nodes[i];
    node.facts = &facts[i];
    node.command = parse_command(facts[i].argv);
    const std::string_view argv0 = facts[i].argv.empty() ? "" : std::string_view(facts[i].argv[0]);
    node.rule = match_rule(node.command, argv0, facts[i].comm);
    if (node.rule != nullptr && node.rule->scope != Scope::kBelowJob) {
      node.place(node.rule->role, node.rule->reason, /*guess=*/false);
    }
    const auto parent = by_pid.find(facts[i].ppid);
    if (parent != by_pid.end() && parent->second != i) {
      node.parent = parent->second;
      tree.nodes[parent->second].children.push_back(i);
    }
  }
  put_in_order(tree);
  return tree;
}

}  // namespace tidemark::monitor
