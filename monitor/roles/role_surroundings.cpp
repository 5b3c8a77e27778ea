// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "common/units.h"
#include "monitor/roles/role_tree.h"

// What is known once the trainers are: compilers and shells below them, wrappers above them.
namespace tidemark::monitor {
namespace {

constexpr std::uint64_t kSmallBytes = 100 * kMiB;  // more than this does work of its own
constexpr std::uint64_t kHeavyBytes = 32 * kMiB;

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

}  // namespace

void place_surroundings(RoleTree& tree) {
  place_below_jobs(tree);
  place_generic_wrappers(tree);
}

}  // namespace tidemark::monitor
