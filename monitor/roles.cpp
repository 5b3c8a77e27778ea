// SPDX-License-Identifier: Apache-2.0
#include "monitor/roles.h"

#include <algorithm>
#include <array>

#include "common/text.h"
#include "monitor/role_tree.h"

namespace tidemark::monitor {
namespace {

constexpr std::uint64_t kMiB = 1U << 20U;
constexpr std::uint64_t kSmallBytes = 100 * kMiB;  // more than this does work of its own
constexpr std::uint64_t kHeavyBytes = 32 * kMiB;

// The best first: a global rank tells processes of several nodes apart.
constexpr std::array<std::string_view, 5> kRankVariables = {
    "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "LOCAL_RANK"};

bool starts_compilers(const RoleTree& tree, const RoleNode& node) {
  return std::any_of(node.children.begin(), node.children.end(), [&](std::size_t child) {
    return tree.nodes[child].matched(Match::kCompiler);
  });
}

// Below a training process a compiler works for it, and a shell is no wrapper.
void place_below_jobs(RoleTree& tree) {
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
    } else if (node.role == Role::kWrapper && starts_compilers(tree, node)) {
      node.place(Role::kCompileWorker, "starts compilers for the training process",
                 /*guess=*/false);
    } else if (node.role == Role::kWrapper) {
      node.place(Role::kOther, "started by the training process", /*guess=*/false);
    }
  }
}

// A process that no rule knows is a wrapper when it is small and its one heavy child is the job.
void place_generic_wrappers(RoleTree& tree) {
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
  return node.rule != nullptr &&
         (node.rule->scope == Scope::kSession || node.rule->role == Role::kOther);
}

// Kernel threads are the children of kthreadd, which has no argv.
bool is_kernel_thread(const ProcessFacts& facts) {
  constexpr pid_t kKthreadd = 2;
  return facts.argv.empty() && (facts.key.pid == kKthreadd || facts.ppid == kKthreadd);
}

}  // namespace

void place_surroundings(RoleTree& tree) {
  place_below_jobs(tree);
  place_generic_wrappers(tree);
}

std::vector<RoleAssignment> assign_roles(std::span<const ProcessFacts> processes) {
  RoleTree tree = build_role_tree(processes);
  place_workers(tree);
  place_jobs(tree);
  place_surroundings(tree);

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
  for (const std::size_t i : tree.order) {
    const RoleNode& node = tree.nodes[i];
    if (separates_jobs(node) || is_kernel_thread(table[i])) {
      continue;
    }
    const std::size_t above = node.parent == kNoNode ? kNoNode : job_of[node.parent];
    job_of[i] = above == kNoNode ? jobs.size() : above;
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

std::span<const std::string_view> rank_variables() { return kRankVariables; }

std::optional<int> rank_from_environment(std::span<const std::string> environment) {
  for (const std::string_view name : kRankVariables) {
    for (const std::string_view entry : environment) {
      if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
        const auto rank = parse_number<int>(entry.substr(name.size() + 1));
        if (rank && *rank >= 0) {
          return rank;
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace tidemark::monitor
