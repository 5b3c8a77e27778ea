// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/growth.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "profiler/heap/python_roots.h"

namespace tidemark::heap {
namespace {

using Node = ObjectGraph::Node;

constexpr std::uint32_t kLeastMoreReferences = 3;
constexpr std::uint64_t kLeastMoreBytes = 64U << 10U;
constexpr std::uint64_t kLeastVariableBytes = 64U << 10U;
constexpr std::size_t kMostSampled = 64;
constexpr std::size_t kMostCandidates = 5000;
constexpr std::size_t kMostGroups = 64;
constexpr std::size_t kMostVariables = 256;
// So many owners side by side are one: "cache[*]".
constexpr std::size_t kLeastAlike = 4;

}  // namespace

AddressTable::Number AddressTable::find(std::uint64_t address) const {
  const auto found = pages_.find(address / kPageBytes);
  if (found == pages_.end() || address % 8 != 0) {
    return kNone;
  }
  const auto place = static_cast<std::uint16_t>(address % kPageBytes / 8);
  const auto begin = places_.begin() + found->second.first;
  const auto end = begin + found->second.count;
  const auto at = std::find(begin, end, place);
  return at == end ? kNone : static_cast<Number>(at - places_.begin());
}

// One look against the first.
class GrowthFinder::Comparison {
 public:
  Comparison(GrowthFinder& finder, const ObjectGraph& graph, ObjectPaths& paths, double t_s)
      : finder_(finder), graph_(graph), paths_(paths), t_s_(t_s) {}

  HeapGrowth run() {
    match();
    find_candidates();
    make_groups();
    reach();
    give_bytes();
    add_variables();
    std::stable_sort(
        growth_.owners.begin(), growth_.owners.end(),
        [](const GrowingOwner& a, const GrowingOwner& b) { return a.grown_bytes > b.grown_bytes; });
    return std::move(growth_);
  }

 private:
  // Marks what is new: of reachable objects, all that were not there with the same type.
  void match() {
    finder_.is_there_.assign(finder_.before_.size(), false);
    is_new_.assign(graph_.size(), false);
    for (const Node node : reachable()) {
      if (const Node old = old_of(node); old != ObjectGraph::kNone) {
        finder_.is_there_[old] = true;
      } else {
        is_new_[node] = true;
        growth_.new_bytes += graph_.bytes(node);
      }
    }
    for (Node node = 0; node < graph_.size(); ++node) {
      if (is_new_[node]) {
        new_nodes_.push_back(node);
      }
    }
    masks_.resize(new_nodes_.size());
    for (Node old = 0; old < finder_.before_.size(); ++old) {
      growth_.gone_bytes +=
          finder_.is_there_[old] ? 0 : std::uint64_t{8} * finder_.before_[old].units;
    }
  }

  std::span<const Node> reachable() const { return graph_.order().first(graph_.reachable()); }

  // Of a new one: its place among them.
  std::size_t place_of(Node node) const {
    return static_cast<std::size_t>(std::lower_bound(new_nodes_.begin(), new_nodes_.end(), node) -
                                    new_nodes_.begin());
  }
  // Which groups lead to an object, a bit for each; only what is new has any.
  std::uint64_t mask_of(Node node) const { return is_new_[node] ? masks_[place_of(node)] : 0; }

  // Its number among those of the first look; kNone: it is new.
  Node old_of(Node node) const {
    const Node old = finder_.table_.find(graph_.address(node));
    if (old == ObjectGraph::kNone || finder_.before_[old].identity != graph_.type(node).identity) {
      return ObjectGraph::kNone;
    }
    // Tensors come and go at the same addresses, and their memory hardly ever grows.
    const bool is_other = graph_.type(node).kind == ObjectKind::kCppStorage &&
                          std::uint64_t{8} * finder_.before_[old].units != graph_.bytes(node);
    return is_other ? ObjectGraph::kNone : old;
  }

  void find_candidates() {
    for (const Node node : reachable()) {
      const Node old = is_new_[node] ? ObjectGraph::kNone : old_of(node);
      if (old == ObjectGraph::kNone) {
        continue;
      }
      Before& before = finder_.before_[old];
      const std::uint32_t count = graph_.reference_count(node);
      if (count < before.last_count) {
        finder_.has_fallen_[old] = true;
      }
      before.last_count = count;
      const std::uint64_t bytes_before = std::uint64_t{8} * before.units;
      const std::uint64_t more_bytes =
          graph_.bytes(node) - std::min(graph_.bytes(node), bytes_before);
      const std::uint32_t more = count - std::min(count, before.reference_count);
      const bool has_more = more >= kLeastMoreReferences && leads_to_new(node);
      if (was_emptied(node, old)) {
        finder_.has_fallen_[old] = true;
      }
      if (!finder_.has_fallen_[old] && (has_more || more_bytes >= kLeastMoreBytes)) {
        sample(node, old);
        candidates_.push_back({node, more, more_bytes, before.reference_count,
                               graph_.root(node).cost >= kInternalRootCost});
      }
    }
    finder_.samples_ = std::move(samples_);
    const auto weight = [](const Candidate& candidate) {
      return candidate.more_bytes + std::uint64_t{64} * candidate.more_references;
    };
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [&](const Candidate& a, const Candidate& b) { return weight(a) > weight(b); });
    if (candidates_.size() > kMostCandidates) {
      candidates_.resize(kMostCandidates);
    }
  }

  // A buffer that was emptied since the look before, and is fuller again, has others in it.
  bool was_emptied(Node node, Node old) const {
    const auto sampled = finder_.samples_.find(old);
    if (sampled == finder_.samples_.end()) {
      return false;
    }
    const std::unordered_set<std::uint64_t> wanted(sampled->second.begin(), sampled->second.end());
    std::unordered_set<std::uint64_t> found;
    for (const Node target : graph_.targets(node)) {
      if (wanted.contains(graph_.address(target))) {
        found.insert(graph_.address(target));
      }
    }
    return 2 * found.size() < wanted.size();
  }

  void sample(Node node, Node old) {
    std::vector<std::uint64_t>& addresses = samples_[old];
    for (const Node target : graph_.targets(node)) {
      if (is_new_[target] && addresses.size() < kMostSampled) {
        addresses.push_back(graph_.address(target));
      }
    }
  }

  // Weak references to others do not hold them.
  bool leads_to_new(Node node) const {
    const auto targets = graph_.targets(node);
    return std::any_of(targets.begin(), targets.end(), [&](Node target) {
      return is_new_[target] && graph_.type(target).kind != ObjectKind::kWeakref;
    });
  }

  void make_groups() {
    std::map<std::string, std::vector<std::pair<ObjectPath, Candidate>>> alike;
    for (const Candidate& candidate : candidates_) {
      ObjectPath path = paths_.of(candidate.node);
      const std::string grouped = path.grouped;
      alike[grouped].emplace_back(std::move(path), candidate);
    }
    for (auto& [grouped, members] : alike) {
      std::map<std::string, Group> by_path;
      for (auto& [path, candidate] : members) {
        const bool is_one_of_many = members.size() >= kLeastAlike;
        Group& group = by_path[is_one_of_many ? grouped : path.text];
        if (group.owner.nodes.empty()) {
          group.owner.type = graph_.type(candidate.node).name;
          group.owner.path = std::move(path);
          if (is_one_of_many) {
            group.owner.path.text = grouped;
          }
          group.is_weak = candidate.is_weak;
        }
        add_to(group, candidate);
      }
      for (auto& [path, group] : by_path) {
        groups_.push_back(std::move(group));
      }
    }
    const auto weight = [](const Group& group) {
      return std::tuple(!group.is_weak,
                        group.own_bytes + std::uint64_t{64} * group.more_references);
    };
    std::stable_sort(groups_.begin(), groups_.end(),
                     [&](const Group& a, const Group& b) { return weight(a) > weight(b); });
    if (groups_.size() > kMostGroups) {
      groups_.resize(kMostGroups);
    }
  }

  void add_to(Group& group, const Candidate& candidate) {
    group.owner.nodes.push_back(candidate.node);
    group.owner.entries += graph_.reference_count(candidate.node);
    group.owner.first_entries += candidate.first_references;
    group.own_bytes += candidate.more_bytes;
    group.more_references += candidate.more_references;
    for (const Node target : graph_.targets(candidate.node)) {
      group.new_references += is_new_[target] ? 1U : 0U;
    }
  }

  // For each new object the groups that lead to it through new ones.
  void reach() {
    std::vector<Node> waiting;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const std::uint64_t bit = std::uint64_t{1} << i;
      // What the interpreter keeps for itself owns only what nobody else does.
      const auto take = [&](Node node) {
        for (const Node target : graph_.targets(node)) {
          if (!is_new_[target]) {
            continue;
          }
          std::uint64_t& mask = masks_[place_of(target)];
          const bool is_taken = groups_[i].is_weak && (mask & strong_) != 0;
          if ((mask & bit) == 0 && !is_taken) {
            mask |= bit;
            waiting.push_back(target);
          }
        }
      };
      for (const Node node : groups_[i].owner.nodes) {
        take(node);
      }
      while (!waiting.empty()) {
        const Node node = waiting.back();
        waiting.pop_back();
        take(node);
      }
      strong_ |= groups_[i].is_weak ? 0 : bit;
    }
  }

  void give_bytes() {
    for (const Node node : reachable()) {
      const std::uint64_t all = mask_of(node);
      for (std::uint64_t mask = all; mask != 0; mask &= mask - 1) {
        groups_[static_cast<std::size_t>(std::countr_zero(mask))].reached_bytes +=
            graph_.bytes(node);
      }
      if (std::has_single_bit(all)) {
        groups_[static_cast<std::size_t>(std::countr_zero(all))].alone_bytes += graph_.bytes(node);
      }
    }
    std::vector<std::size_t> rank(groups_.size());
    std::iota(rank.begin(), rank.end(), std::size_t{0});
    std::stable_sort(rank.begin(), rank.end(), [&](std::size_t a, std::size_t b) {
      return is_before(groups_[a], groups_[b]);
    });
    std::vector<std::size_t> place(groups_.size());
    for (std::size_t i = 0; i < rank.size(); ++i) {
      place[rank[i]] = i;
    }
    std::vector<std::map<std::size_t, std::uint64_t>> shared(groups_.size());
    for (const Node node : reachable()) {
      give(node, place, shared);
    }
    for (const std::size_t i : rank) {
      finish(groups_[i], shared[i]);
    }
    for (const std::size_t i : rank) {  // after all have named the others
      growth_.owners.push_back(std::move(groups_[i].owner));
    }
  }

  // What leads to clearly more comes first; else what leads to more that nobody else does, and what
  // a person would name.
  static bool is_before(const Group& a, const Group& b) {
    const std::uint64_t of_a = a.reached_bytes + a.own_bytes;
    const std::uint64_t of_b = b.reached_bytes + b.own_bytes;
    if (std::max(of_a, of_b) - std::min(of_a, of_b) > std::max(of_a, of_b) / 20) {
      return of_a > of_b;
    }
    return std::tuple(a.owner.path.is_library, a.owner.path.text.size(), a.owner.path.text) <
           std::tuple(b.owner.path.is_library, b.owner.path.text.size(), b.owner.path.text);
  }

  // Its bytes count for the first of those that lead to it.
  void give(Node node, const std::vector<std::size_t>& place,
            std::vector<std::map<std::size_t, std::uint64_t>>& shared) {
    const std::uint64_t all = mask_of(node);
    if (all == 0) {
      return;
    }
    std::uint64_t mask = all;
    auto first = static_cast<std::size_t>(std::countr_zero(mask));
    for (; mask != 0; mask &= mask - 1) {
      const auto group = static_cast<std::size_t>(std::countr_zero(mask));
      first = place[group] < place[first] ? group : first;
    }
    groups_[first].first_bytes += graph_.bytes(node);
    groups_[first].owner.new_nodes.push_back(node);
    for (mask = all; mask != 0; mask &= mask - 1) {
      if (const auto group = static_cast<std::size_t>(std::countr_zero(mask)); group != first) {
        shared[first][group] += graph_.bytes(node);
        shared[group][first] += graph_.bytes(node);
      }
    }
  }

  void finish(Group& group, const std::map<std::size_t, std::uint64_t>& shared) {
    GrowingOwner& owner = group.owner;
    owner.share =
        group.new_references > group.more_references && group.new_references > 0
            ? static_cast<double>(group.more_references) / static_cast<double>(group.new_references)
            : 1.0;
    const auto scaled = [&](std::uint64_t bytes) {
      return static_cast<std::uint64_t>(owner.share * static_cast<double>(bytes));
    };
    owner.grown_bytes = scaled(group.first_bytes) + group.own_bytes;
    owner.grown_bytes_alone = scaled(group.alone_bytes) + group.own_bytes;
    const auto most =
        std::max_element(shared.begin(), shared.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != shared.end() && most->second > group.reached_bytes / 10) {
      owner.shared_with = groups_[most->first].owner.path.text;
    }
  }

  // What is new and below no such owner belongs to a variable that was assigned anew. Of most of
  // them the new value has only taken the place of the old one: from the third look on, only what
  // has grown since the second counts.
  void add_variables() {
    struct Slot {
      std::vector<Node> nodes;
      std::uint64_t bytes = 0;
    };
    std::unordered_map<Node, Slot> by_top;
    std::vector<Node> top(new_nodes_.size(), ObjectGraph::kNone);
    for (const Node node : reachable()) {
      if (!is_new_[node]) {
        continue;
      }
      const Node parent = graph_.parent(node);
      const std::size_t place = place_of(node);
      top[place] = parent != ObjectGraph::kNone && is_new_[parent] ? top[place_of(parent)] : node;
      if (masks_[place] == 0) {
        Slot& slot = by_top[top[place]];
        slot.bytes += graph_.bytes(node);
        slot.nodes.push_back(node);
      }
    }
    std::vector<std::pair<Node, Slot*>> largest;
    for (auto& [node, slot] : by_top) {
      if (!is_in_buffer(node)) {
        largest.emplace_back(node, &slot);
      }
    }
    std::sort(largest.begin(), largest.end(), [](const auto& a, const auto& b) {
      return std::pair(b.second->bytes, a.first) < std::pair(a.second->bytes, b.first);
    });
    largest.resize(std::min(largest.size(), kMostVariables));
    std::map<std::string, GrowingOwner> by_path;
    for (const auto& [node, slot] : largest) {
      ObjectPath path = paths_.of(node);
      GrowingOwner& owner = by_path[path.grouped];
      if (owner.nodes.empty()) {
        owner.kind = OwnerKind::kVariable;
        owner.type = graph_.type(node).name;
        owner.path = std::move(path);
      }
      owner.nodes.push_back(node);
      owner.grown_bytes += slot->bytes;
      owner.new_nodes.insert(owner.new_nodes.end(), slot->nodes.begin(), slot->nodes.end());
    }
    for (auto& [path, owner] : by_path) {
      add_variable(path, std::move(owner));
    }
  }

  // What is in something that is emptied now and then does not stay.
  bool is_in_buffer(Node node) const {
    const Node parent = graph_.parent(node);
    const Node old = parent == ObjectGraph::kNone ? parent : old_of(parent);
    return old != ObjectGraph::kNone && finder_.has_fallen_[old];
  }

  void add_variable(const std::string& path, GrowingOwner owner) {
    const std::uint64_t bytes = owner.grown_bytes;
    const auto [found, is_first] =
        finder_.variables_.try_emplace(path, Seen{t_s_, bytes, bytes, false});
    Seen& seen = found->second;
    seen.has_fallen = seen.has_fallen || bytes < seen.last_bytes;
    seen.last_bytes = bytes;
    if (is_first && finder_.compared_ > 1) {
      return;  // it was not there at the look before: nothing tells how much of it stays
    }
    if (!is_first) {
      if (seen.has_fallen || bytes <= seen.bytes || t_s_ <= seen.t_s) {
        return;
      }
      const double all =
          static_cast<double>(bytes - seen.bytes) * (t_s_ - finder_.first_t_s_) / (t_s_ - seen.t_s);
      owner.share = std::min(1.0, all / static_cast<double>(bytes));
      owner.grown_bytes = static_cast<std::uint64_t>(owner.share * static_cast<double>(bytes));
    }
    owner.grown_bytes_alone = owner.grown_bytes;
    if (owner.grown_bytes >= kLeastVariableBytes) {
      growth_.owners.push_back(std::move(owner));
    }
  }

  GrowthFinder& finder_;
  const ObjectGraph& graph_;
  ObjectPaths& paths_;
  double t_s_;
  HeapGrowth growth_;
  std::vector<bool> is_new_;
  std::vector<Node> new_nodes_;       // in ascending order
  std::vector<std::uint64_t> masks_;  // of these
  std::uint64_t strong_ = 0;          // of all that are not weak, so far
  std::unordered_map<Node, std::vector<std::uint64_t>> samples_;
  std::vector<Candidate> candidates_;
  std::vector<Group> groups_;
};

void GrowthFinder::begin(const ObjectGraph& graph) {
  const auto nodes = graph.order().first(graph.reachable());
  table_.fill([&](const auto& visit) {
    for (const Node node : nodes) {
      visit(graph.address(node));
    }
  });
  before_.resize(table_.size());
  for (const Node node : nodes) {
    const std::uint32_t count = graph.reference_count(node);
    const AddressTable::Number old = table_.find(graph.address(node));
    if (old != AddressTable::kNone) {
      before_[old] = {graph.type(node).identity, static_cast<std::uint32_t>(graph.bytes(node) / 8),
                      count, count};
    }
  }
  has_fallen_.assign(before_.size(), false);
}

HeapGrowth GrowthFinder::compare(const ObjectGraph& graph, ObjectPaths& paths, double t_s) {
  if (graph.is_partial()) {  // what was not reached is neither new nor gone
    return {};
  }
  if (!has_begun_) {
    has_begun_ = true;
    first_t_s_ = t_s;
    begin(graph);
    return {};
  }
  ++compared_;
  return Comparison(*this, graph, paths, t_s).run();
}

}  // namespace tidemark::heap
