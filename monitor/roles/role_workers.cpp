// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "common/text.h"
#include "monitor/roles/role_tree.h"

// Workers that have no name of their own, and whose workers they are.
namespace tidemark::monitor {
namespace {

// A worker that multiprocessing started with an interpreter of its own. DataLoader workers are
// daemons and may not have such children themselves, so whoever has is a rank or a trainer.
bool is_spawned(const RoleNode& node) {
  return node.matched(Match::kCode) && node.rule->scope == Scope::kBelowJob;
}

bool has_workers_below(const RoleTree& tree, const RoleNode& node) {
  return tree.any_child(node, [](const RoleNode& child) {
    return child.is_worker() || is_spawned(child) || child.role == Role::kForkserver;
  });
}

bool forks_workers(const RoleNode& parent, const RoleNode& child) {
  return parent.role == Role::kForkserver && parent.facts->argv == child.facts->argv;
}

// The ranks of torch.multiprocessing.spawn look like DataLoader workers but do the parent's work.
bool outweighs(const RoleNode& child, const RoleNode& parent) {
  constexpr std::uint64_t kBusyBytes = 64 * kMiB;
  const std::uint64_t parent_bytes = parent.facts->footprint_bytes;
  return child.facts->footprint_bytes >= kBusyBytes &&
         child.facts->footprint_bytes > parent_bytes + parent_bytes / 2;
}

// The process that asked for a worker: through the forkserver if there is one.
std::size_t requester(const RoleTree& tree, const RoleNode& node) {
  std::size_t at = node.parent;
  while (at != kNoNode && tree.nodes[at].role == Role::kForkserver) {
    at = tree.nodes[at].parent;
  }
  return at;
}

// torch names its DataLoader workers, and its compile workers by their program, since 2.4.
bool has_named_workers(const RoleTree& tree, const RoleNode& node) {
  return tree.any_child(node, [](const RoleNode& c) { return c.is_worker() && !c.inferred; });
}

// In a tree that holds a session, pools of any Python service would pass for workers, so only what
// has a name counts.
bool may_guess(const RoleTree& tree, const RoleNode& owner) {
  return !tree.has_session(owner) || has_named_workers(tree, owner);
}

// A process that has given itself a title shows no argv to compare.
bool has_title(const RoleNode& node) {
  const std::vector<std::string>& argv = node.facts->argv;
  return node.matched(Match::kTitle) || argv.empty() ||
         (argv[0].find(' ') != std::string::npos &&
          std::all_of(argv.begin() + 1, argv.end(),
                      [](const std::string& word) { return word.empty(); }));
}

void place_multiprocessing(RoleTree& tree, RoleNode& node) {
  if (node.parent == kNoNode || node.is_worker()) {
    return;
  }
  const RoleNode& parent = tree.nodes[node.parent];
  const bool forked = forks_workers(parent, node);
  if (!forked && !is_spawned(node)) {
    return;
  }
  if (parent.role == Role::kCompileWorker) {
    node.place(Role::kCompileWorker, "spawned by a compile worker", /*guess=*/false);
    return;
  }
  const bool may_spawn = parent.unplaced() && (parent.command.python || has_title(parent));
  if (!forked && !may_spawn) {
    return;  // an orphan, or a child of something that trains nothing
  }
  const std::size_t owner = requester(tree, node);
  if (owner == kNoNode || !may_guess(tree, tree.nodes[owner])) {
    return;
  }
  if (has_workers_below(tree, node) || outweighs(node, tree.nodes[owner])) {
    node.place(Role::kOther, "", /*guess=*/false);
    node.rule = nullptr;  // a job process, to be placed as such
    return;
  }
  const std::string_view why =
      forked ? std::string_view("forked by the forkserver below the trainer") : node.rule->reason;
  node.place(Role::kDataloaderWorker, why, /*guess=*/true);
}

// Whatever a compile worker starts works for it.
void place_below_compile_worker(const RoleTree& tree, RoleNode& node) {
  if (node.parent == kNoNode || tree.nodes[node.parent].role != Role::kCompileWorker) {
    return;
  }
  const bool own_role = node.role == Role::kCompileWorker || node.role == Role::kResourceTracker;
  if (!own_role) {
    node.place(Role::kCompileWorker, "started by a compile worker", /*guess=*/false);
  }
}

// Children that carry their parent's argv, one after the other by start time.
std::vector<std::size_t> forked_children(const RoleTree& tree, const RoleNode& parent) {
  std::vector<std::size_t> forked;
  for (const std::size_t child : parent.children) {
    const RoleNode& node = tree.nodes[child];
    if (node.unplaced() && node.facts->rank == parent.facts->rank &&
        node.facts->argv == parent.facts->argv) {
      forked.push_back(child);
    }
  }
  std::sort(forked.begin(), forked.end(), [&](std::size_t a, std::size_t b) {
    return tree.nodes[a].facts->key.start_ticks < tree.nodes[b].facts->key.start_ticks;
  });
  return forked;
}

// One pool: forked one right after the other. DataLoader workers have no name before torch 2.4. The
// compile workers of torch 2.0-2.3 look the same, until one of them starts a compiler.
void place_pool(RoleTree& tree, std::span<const std::size_t> pool) {
  const bool compiles = std::any_of(pool.begin(), pool.end(), [&](std::size_t i) {
    return tree.nodes[i].facts->earlier == Role::kCompileWorker ||
           tree.any_child(tree.nodes[i],
                          [](const RoleNode& child) { return child.matched(Match::kCompiler); });
  });
  if (!compiles && pool.size() < 2) {
    return;
  }
  for (const std::size_t i : pool) {
    if (compiles) {
      tree.nodes[i].place(Role::kCompileWorker,
                          "forked from the trainer with its siblings, which start compilers",
                          /*guess=*/true);
    } else {
      tree.nodes[i].place(Role::kDataloaderWorker,
                          "forked from the trainer with its siblings, same argv",
                          /*guess=*/true);
    }
  }
}

void place_forked(RoleTree& tree, const RoleNode& parent) {
  if (!parent.command.python || !parent.unplaced() || !may_guess(tree, parent)) {
    return;
  }
  const std::vector<std::size_t> forked = forked_children(tree, parent);
  if (forked.empty()) {
    return;
  }
  // Beside named workers a nameless child is a DataLoader worker that has just started.
  if (has_named_workers(tree, parent)) {
    for (const std::size_t i : forked) {
      tree.nodes[i].place(Role::kDataloaderWorker,
                          "forked from the trainer, same argv, not yet renamed", /*guess=*/true);
    }
    return;
  }
  constexpr std::uint64_t kSamePoolTicks = 10;  // 100 ms between one fork and the next
  std::size_t begin = 0;
  for (std::size_t end = 1; end <= forked.size(); ++end) {
    const auto started = [&](std::size_t i) {
      return tree.nodes[forked[i]].facts->key.start_ticks;
    };
    if (end == forked.size() || started(end) - started(end - 1) > kSamePoolTicks) {
      place_pool(tree, std::span(forked).subspan(begin, end - begin));
      begin = end;
    }
  }
}

// --parent= of a compile worker: the training process, also after the sidecar was reparented.
std::optional<pid_t> named_parent(const RoleNode& node) {
  constexpr std::string_view kFlag = "--parent=";
  if (!node.matched(Match::kScript) && !node.matched(Match::kModule)) {
    return std::nullopt;  // forked from the trainer: the flag would be the training script's
  }
  for (const std::string& word : node.command.arguments) {
    if (word.starts_with(kFlag)) {
      return parse_number<pid_t>(std::string_view(word).substr(kFlag.size()));
    }
  }
  return std::nullopt;
}

void mark_owners(RoleTree& tree) {
  for (const RoleNode& node : tree.nodes) {
    if (!node.is_worker()) {
      continue;
    }
    std::size_t owner = requester(tree, node);
    if (const auto pid = named_parent(node); pid && tree.by_pid.contains(*pid)) {
      owner = tree.by_pid.at(*pid);
    }
    if (owner != kNoNode && (tree.nodes[owner].unplaced() || tree.nodes[owner].is_server())) {
      tree.nodes[owner].owns_workers = true;
    }
  }
}

}  // namespace

bool is_adopted(const RoleNode& worker, const RoleNode& parent) {
  if (worker.role == Role::kCompileWorker) {
    // In a pid namespace of its own the number means another process to us.
    const std::optional<pid_t> starter = named_parent(worker);
    return starter && *starter != parent.facts->key.pid && !parent.command.python;
  }
  if (worker.role != Role::kDataloaderWorker || has_title(parent)) {
    return false;
  }
  const bool spawned = worker.command.inline_code.find("spawn_main") != std::string_view::npos;
  return spawned ? !parent.command.python : worker.facts->argv != parent.facts->argv;
}

void place_workers(RoleTree& tree) {
  for (const std::size_t i : tree.order) {
    place_multiprocessing(tree, tree.nodes[i]);
    place_below_compile_worker(tree, tree.nodes[i]);
  }
  for (const std::size_t i : tree.order) {
    place_forked(tree, tree.nodes[i]);
  }
  for (const std::size_t i : tree.order) {
    place_below_compile_worker(tree, tree.nodes[i]);
  }
  mark_owners(tree);
}

}  // namespace tidemark::monitor
