// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles/roles.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "common/text.h"
#include "monitor/roles/role_tree.h"

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

// Puts a node below its parent, unless that has only adopted it.
void link_to_parent(RoleTree& tree, std::size_t i) {
  constexpr pid_t kInit = 1;
  RoleNode& node = tree.nodes[i];
  const auto found = tree.by_pid.find(node.facts->ppid);
  if (found == tree.by_pid.end() || found->second == i) {
    node.orphaned = node.is_worker() && node.facts->ppid <= kInit;
    return;
  }
  RoleNode& parent = tree.nodes[found->second];
  node.orphaned = is_adopted(node, parent);
  if (!node.orphaned) {
    node.parent = found->second;
    parent.children.push_back(i);
  }
}

// A server forks processes to do its work: they are like it in all but that.
void unplace_forked_servers(RoleTree& tree) {
  for (RoleNode& node : tree.nodes) {
    if (node.is_server() && node.parent != kNoNode &&
        tree.nodes[node.parent].facts->argv == node.facts->argv) {
      node.rule = nullptr;
      node.place(Role::kOther, "", /*guess=*/false);
    }
  }
}

// Links parents and children and applies the rules that hold anywhere.
RoleTree build_role_tree(std::span<const ProcessFacts> facts) {
  RoleTree tree;
  tree.nodes.resize(facts.size());
  tree.order.reserve(facts.size());
  tree.by_pid.reserve(facts.size());
  for (std::size_t i = 0; i < facts.size(); ++i) {
    tree.by_pid.emplace(facts[i].key.pid, i);
    RoleNode& node = tree.nodes[i];
    node.facts = &facts[i];
    node.command = parse_command(facts[i].argv);
    const std::string_view argv0 = facts[i].argv.empty() ? "" : std::string_view(facts[i].argv[0]);
    node.rule = match_rule(node.command, argv0, facts[i].comm);
    if (node.rule != nullptr && node.rule->scope != Scope::kBelowJob) {
      node.place(node.rule->role, node.rule->reason, /*guess=*/false);
    }
  }
  for (std::size_t i = 0; i < facts.size(); ++i) {
    link_to_parent(tree, i);
  }
  unplace_forked_servers(tree);
  put_in_order(tree);
  for (const RoleNode& node : tree.nodes) {
    if (node.is_session()) {
      tree.session_roots.insert(node.root);
    }
  }
  return tree;
}

// Below a training process a compiler works for it, and a shell is no wrapper.
void place_below_trainers(RoleTree& tree) {
  std::vector<bool> below(tree.nodes.size(), false);
  for (const std::size_t i : tree.order) {
    RoleNode& node = tree.nodes[i];
    if (node.parent == kNoNode) {
      continue;
    }
    const RoleNode& parent = tree.nodes[node.parent];
    below[i] = below[node.parent] || parent.is_job() || parent.is_worker();
    if (!below[i]) {
      continue;
    }
    if (node.matched(Match::kCompiler)) {
      node.place(Role::kCompileWorker, node.rule->reason, /*guess=*/false);
    } else if (node.role == Role::kWrapper && tree.any_child(node, [](const RoleNode& child) {
                 return child.matched(Match::kCompiler);
               })) {
      node.place(Role::kCompileWorker, "starts compilers for the training process",
                 /*guess=*/false);
    } else if (node.role == Role::kWrapper) {
      node.place(Role::kOther, "started by the training process", /*guess=*/false);
    }
  }
}

// A process that no rule knows is a wrapper when it is small and its one heavy child is the job.
void place_unknown_wrappers(RoleTree& tree) {
  struct Below {
    std::size_t children_with_jobs = 0;
    std::uint64_t heaviest_job_bytes = 0;
  };
  std::vector<Below> below(tree.nodes.size());
  for (auto at = tree.order.rbegin(); at != tree.order.rend(); ++at) {
    RoleNode& node = tree.nodes[*at];
    Below& own = below[*at];
    const std::uint64_t bytes = node.facts->footprint_bytes;
    if (node.unplaced() && own.children_with_jobs == 1 && bytes < kSmallBytes &&
        own.heaviest_job_bytes >= std::max(kHeavyBytes, 2 * bytes)) {
      node.place(Role::kWrapper, "small itself, its one heavy child is the job", /*guess=*/true);
    }
    if (node.is_job()) {
      own.heaviest_job_bytes = std::max(own.heaviest_job_bytes, bytes);
    }
    const bool holds_job =
        node.is_job() || node.role == Role::kLauncher || own.children_with_jobs > 0;
    if (holds_job && node.parent != kNoNode) {
      Below& above = below[node.parent];
      ++above.children_with_jobs;
      above.heaviest_job_bytes = std::max(above.heaviest_job_bytes, own.heaviest_job_bytes);
    }
  }
}

bool separates_jobs(const RoleNode& node) {
  return node.is_session() || (node.rule != nullptr && node.rule->role == Role::kOther);
}

// The best first: a global rank tells processes of several nodes apart.
constexpr std::array kRankNames = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID",
                                   "LOCAL_RANK"};
constexpr const char* kSlurmJob = "SLURM_JOB_ID";
constexpr const char* kSlurmStep = "SLURM_STEP_ID";
constexpr const char* kElasticRun = "TORCHELASTIC_RUN_ID";

// "" when it is not set.
std::string_view value_of(std::span<const std::string> environment, std::string_view name) {
  for (const std::string_view entry : environment) {
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

// Kernel threads are the children of kthreadd, which has no argv.
bool is_kernel_thread(const ProcessFacts& facts) {
  constexpr pid_t kKthreadd = 2;
  return facts.argv.empty() && (facts.key.pid == kKthreadd || facts.ppid == kKthreadd);
}

}  // namespace

std::size_t RankTrees::tree_of(const ProcessFacts& facts, std::size_t own) {
  if (facts.job.empty() || !facts.rank) {
    return own;
  }
  Job& job = jobs_.try_emplace(facts.job, Job{own, {}}).first->second;
  return job.ranks.insert(*facts.rank).second ? job.first : own;
}

std::vector<RoleAssignment> assign_roles(std::span<const ProcessFacts> processes) {
  RoleTree tree = build_role_tree(processes);
  place_workers(tree);
  place_trainers(tree);
  place_below_trainers(tree);
  place_unknown_wrappers(tree);

  std::vector<RoleAssignment> assignments;
  assignments.reserve(processes.size());
  for (const RoleNode& node : tree.nodes) {
    const std::string_view reason = node.reason.empty() ? "no rule knows it" : node.reason;
    assignments.push_back(
        {node.role, node.is_job() ? node.rank : std::nullopt, node.inferred, std::string(reason)});
  }
  return assignments;
}

std::vector<std::vector<std::size_t>> job_trees(std::span<const ProcessFacts> table) {
  const RoleTree tree = build_role_tree(table);
  std::vector<std::size_t> job_of(table.size(), kNoNode);
  std::vector<std::vector<std::size_t>> jobs;
  RankTrees joined;
  for (const std::size_t i : tree.order) {
    const RoleNode& node = tree.nodes[i];
    if (separates_jobs(node) || is_kernel_thread(table[i])) {
      continue;
    }
    const std::size_t above = node.parent == kNoNode ? kNoNode : job_of[node.parent];
    job_of[i] = above == kNoNode ? joined.tree_of(table[i], jobs.size()) : above;
    if (job_of[i] == jobs.size()) {
      jobs.emplace_back();
    }
    jobs[job_of[i]].push_back(i);
  }
  for (auto& job : jobs) {
    std::sort(job.begin(), job.end());
  }
  return jobs;
}

std::vector<std::size_t> orphaned_workers(std::span<const ProcessFacts> table) {
  const RoleTree tree = build_role_tree(table);
  std::vector<std::size_t> orphans;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    if (tree.nodes[i].orphaned) {
      orphans.push_back(i);
    }
  }
  return orphans;
}

const std::vector<std::string>& launcher_variables() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> all(kRankNames.begin(), kRankNames.end());
    all.insert(all.end(), {kSlurmJob, kSlurmStep, kElasticRun});
    return all;
  }();
  return kNames;
}

std::optional<int> rank_from_environment(std::span<const std::string> environment) {
  for (const char* name : kRankNames) {
    const auto rank = parse_number<int>(value_of(environment, name));
    if (rank && *rank >= 0) {
      return rank;
    }
  }
  return std::nullopt;
}

std::string job_from_environment(std::span<const std::string> environment) {
  const std::string_view job = value_of(environment, kSlurmJob);
  const std::string_view step = value_of(environment, kSlurmStep);
  if (!job.empty() && !step.empty()) {  // without a step: all that runs in an allocation
    return fmt::format("slurm {}.{}", job, step);
  }
  const std::string_view run = value_of(environment, kElasticRun);
  return run.empty() || run == "none" ? "" : fmt::format("torchrun {}", run);  // none: unnamed
}

}  // namespace tidemark::monitor
