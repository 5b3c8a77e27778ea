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

bool separates_jobs(const RoleNode& node) {
  return node.rule != nullptr &&
         (node.rule->scope == Scope::kSession || node.rule->role == Role::kOther);
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
