// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "common/text.h"
#include "monitor/roles/role_tree.h"

// Which processes train: owners of workers, ranks, or the best guess where there are neither.
namespace tidemark::monitor {
namespace {

constexpr std::string_view kOwnsWorkers = "owns the compile or DataLoader workers";

// `--local_rank=3`, `--local-rank 3`: what torch.distributed.launch and deepspeed pass.
std::optional<int> rank_of_arguments(const Command& command) {
  for (std::size_t i = 0; i < command.arguments.size(); ++i) {
    const std::string_view word = command.arguments[i];
    for (const std::string_view flag : {"--local_rank", "--local-rank"}) {
      if (word == flag && i + 1 < command.arguments.size()) {
        return parse_number<int>(command.arguments[i + 1]);
      }
      if (word.starts_with(flag) && word.substr(flag.size()).starts_with('=')) {
        return parse_number<int>(word.substr(flag.size() + 1));
      }
    }
  }
  return std::nullopt;
}

// Who most likely trains: who owns workers, else python, else the heaviest; kNoNode of none.
std::size_t likeliest(const RoleTree& tree, const std::vector<std::size_t>& indices) {
  const auto signs = [&](std::size_t i) {
    const RoleNode& node = tree.nodes[i];
    return std::tuple(node.owns_workers, node.command.python, node.facts->footprint_bytes,
                      node.facts->cpu_ticks);
  };
  const auto best =
      std::min_element(indices.begin(), indices.end(),
                       [&](std::size_t a, std::size_t b) { return signs(a) > signs(b); });
  return best == indices.end() ? kNoNode : *best;
}

// Processes of one rank, each the parent of the next: the rank itself and shells in front of it.
struct RankGroup {
  int rank = 0;
  std::size_t job = kNoNode;         // the launcher that started it, or the root of its first tree
  std::size_t above = kNoNode;       // parent of its topmost member
  std::vector<std::size_t> members;  // those that may be the rank
};

std::size_t job_of(const RoleTree& tree, std::size_t at, RankTrees& joined) {
  for (std::size_t up = at; up != kNoNode; up = tree.nodes[up].parent) {
    if (tree.nodes[up].role == Role::kLauncher) {
      return up;
    }
  }
  return joined.tree_of(*tree.nodes[at].facts, tree.nodes[at].root);
}

std::vector<RankGroup> find_rank_groups(RoleTree& tree) {
  std::vector<RankGroup> groups;
  RankTrees joined;
  std::vector<std::size_t> group_of(tree.nodes.size(), kNoNode);
  for (const std::size_t i : tree.order) {
    RoleNode& node = tree.nodes[i];
    if (!node.unplaced() && node.role != Role::kWrapper) {
      continue;  // a launcher or a helper; those inherit the environment too
    }
    node.rank = node.facts->rank ? node.facts->rank : rank_of_arguments(node.command);
    if (!node.rank) {
      continue;
    }
    const std::size_t above = node.parent == kNoNode ? kNoNode : group_of[node.parent];
    if (above != kNoNode && groups[above].rank == *node.rank) {
      group_of[i] = above;
    } else {
      group_of[i] = groups.size();
      groups.push_back({*node.rank, job_of(tree, i, joined), node.parent, {}});
    }
    if (node.unplaced()) {
      groups[group_of[i]].members.push_back(i);
    }
  }
  std::erase_if(groups, [](const RankGroup& group) { return group.members.empty(); });
  return groups;
}

// Lightning's main process is rank 0 itself and starts the others with LOCAL_RANK=1, 2, ...
bool is_implied_rank_zero(const RoleNode& node, const std::set<int>& ranks) {
  return node.unplaced() && node.command.python && !node.rank && !ranks.contains(0) &&
         (node.owns_workers || node.facts->footprint_bytes >= kHeavyBytes);
}

void place_ranks(RoleTree& tree) {
  std::map<std::size_t, std::vector<RankGroup>> jobs;
  for (RankGroup& group : find_rank_groups(tree)) {
    jobs[group.job].push_back(std::move(group));
  }
  for (const auto& [job, groups] : jobs) {
    std::set<int> ranks;
    for (const RankGroup& group : groups) {
      ranks.insert(group.rank);
    }
    const std::size_t above = groups.front().above;
    const bool implied = above != kNoNode && is_implied_rank_zero(tree.nodes[above], ranks);
    const bool several = groups.size() > 1 || implied;
    if (!several && tree.nodes[job].role != Role::kLauncher) {
      continue;  // the variable may be set for a whole container; found like any trainer
    }
    if (implied) {
      tree.nodes[above].place(Role::kRank, "starts the other ranks and trains itself",
                              /*guess=*/true);
      tree.nodes[above].rank = 0;
    }
    for (const RankGroup& group : groups) {
      tree.nodes[likeliest(tree, group.members)].place(several ? Role::kRank : Role::kTrainer,
                                                       "its rank is set", /*guess=*/false);
    }
  }
}

// Ranks that torch.multiprocessing.spawn started have no number that shows from outside.
void place_spawned_ranks(RoleTree& tree) {
  for (RoleNode& parent : tree.nodes) {
    if (!parent.unplaced() || parent.owns_workers || !parent.command.python) {
      continue;
    }
    std::vector<std::size_t> ranks;
    for (const std::size_t child : parent.children) {
      const RoleNode& node = tree.nodes[child];
      if (node.unplaced() &&
          node.command.inline_code.find("spawn_main") != std::string_view::npos) {
        ranks.push_back(child);
      }
    }
    if (ranks.size() < 2) {
      continue;
    }
    parent.place(Role::kLauncher, "starts its ranks by multiprocessing", /*guess=*/true);
    for (const std::size_t child : ranks) {
      tree.nodes[child].place(Role::kRank, "spawned by multiprocessing, does the work itself",
                              /*guess=*/true);
    }
  }
}

// What is known of one tree of the forest before guessing.
struct TreeSummary {
  bool has_job = false;  // trainers, ranks, ray or inference: nothing to guess
  bool has_session = false;
  std::vector<std::size_t> pythons;
  std::vector<std::size_t> natives;  // topmost processes that no rule knows
};

std::map<std::size_t, TreeSummary> summarise(const RoleTree& tree) {
  std::map<std::size_t, TreeSummary> summaries;
  for (const std::size_t i : tree.order) {
    const RoleNode& node = tree.nodes[i];
    TreeSummary& summary = summaries[node.root];
    summary.has_session = tree.has_session(node);
    summary.has_job |= node.is_job() || node.role == Role::kRay || node.role == Role::kInference;
    if (!node.unplaced()) {
      continue;
    }
    if (node.command.python) {
      summary.pythons.push_back(i);
    } else if (node.parent == kNoNode || !tree.nodes[node.parent].unplaced()) {
      summary.natives.push_back(i);
    }
  }
  return summaries;
}

// Whether a process that a server has started is one of its jobs: one that is about as heavy, or
// the same program with something else to do.
bool may_be_job_of(const RoleNode& server, const RoleNode& node) {
  constexpr std::uint64_t kLightPart = 4;
  const bool same_program = !node.command.program.empty() &&
                            node.command.program == server.command.program &&
                            node.facts->argv != server.facts->argv;
  return node.unplaced() &&
         (same_program || node.facts->footprint_bytes > server.facts->footprint_bytes / kLightPart);
}

// A server starts a process for each job, or trains itself. Once it was seen to start one it waits
// for the next.
void place_server(RoleTree& tree, RoleNode& server, const std::vector<std::size_t>& below) {
  bool has_job = false;
  bool may_have_job = server.facts->earlier == Role::kLauncher;
  std::uint64_t heaviest_bytes = server.facts->footprint_bytes;
  for (const std::size_t i : below) {
    const RoleNode& node = tree.nodes[i];
    has_job = has_job || node.is_job();
    if (may_be_job_of(server, node)) {
      may_have_job = true;
      heaviest_bytes = std::max(heaviest_bytes, node.facts->footprint_bytes);
    }
  }
  if (!has_job && tree.has_session(server) && heaviest_bytes < kSmallBytes) {
    server.place(Role::kOther, "a server", /*guess=*/false);
  } else if (server.owns_workers || (!has_job && !may_have_job)) {
    server.place(Role::kTrainer, "a server that trains in its own process", /*guess=*/true);
  }
}

void place_servers(RoleTree& tree) {
  std::map<std::size_t, std::vector<std::size_t>> below;  // by server
  for (const std::size_t i : tree.order) {
    if (tree.nodes[i].is_server()) {
      below[i];
    }
    for (std::size_t up = tree.nodes[i].parent; up != kNoNode; up = tree.nodes[up].parent) {
      if (tree.nodes[up].is_server()) {
        below[up].push_back(i);
      }
    }
  }
  for (const auto& [server, nodes] : below) {
    place_server(tree, tree.nodes[server], nodes);
  }
}

void guess_trainer(RoleTree& tree, const TreeSummary& summary) {
  if (const std::size_t python = likeliest(tree, summary.pythons); python != kNoNode) {
    if (!summary.has_session || tree.nodes[python].facts->footprint_bytes >= kSmallBytes) {
      tree.nodes[python].place(Role::kTrainer, "the heaviest python of its tree", /*guess=*/true);
    }
    return;
  }
  if (summary.has_session || summary.natives.empty()) {
    return;
  }
  const std::size_t first = likeliest(tree, summary.natives);
  if (summary.natives.size() == 1) {
    tree.nodes[first].place(Role::kTrainer, "the only process that is no wrapper", /*guess=*/true);
    return;
  }
  std::uint64_t rest_bytes = 0;
  for (const std::size_t i : summary.natives) {
    rest_bytes = std::max(rest_bytes, i == first ? 0 : tree.nodes[i].facts->footprint_bytes);
  }
  const std::uint64_t first_bytes = tree.nodes[first].facts->footprint_bytes;
  if (first_bytes >= kHeavyBytes && first_bytes / 4 >= rest_bytes) {
    tree.nodes[first].place(Role::kTrainer, "by far the heaviest of its tree", /*guess=*/true);
  }
}

}  // namespace

void place_trainers(RoleTree& tree) {
  place_ranks(tree);
  place_spawned_ranks(tree);
  for (RoleNode& node : tree.nodes) {
    if (node.owns_workers && node.unplaced()) {
      node.place(Role::kTrainer, kOwnsWorkers, /*guess=*/false);
    }
  }
  place_servers(tree);
  for (const auto& [root, summary] : summarise(tree)) {
    if (!summary.has_job) {
      guess_trainer(tree, summary);
    }
  }
}

}  // namespace tidemark::monitor
