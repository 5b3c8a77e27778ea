// SPDX-License-Identifier: Apache-2.0
#include "profiler/heap/object_graph.h"

#include <algorithm>
#include <utility>

namespace tidemark::heap {
namespace {

// More than any root or step costs: a ring of so many buckets is enough.
constexpr std::uint32_t kBuckets = 128;
// A module is named by itself, not by where it is imported.
constexpr std::uint32_t kModuleCost = 20;

// Millions of numbers: a quarter more at a time leaves less unused than twice as many.
template <typename T>
void append(std::vector<T>& all, T value) {
  if (all.size() == all.capacity()) {
    all.reserve(all.size() + all.size() / 4 + 1024);
  }
  all.push_back(value);
}

std::uint32_t cost_of(const Reference& reference) {
  switch (reference.kind) {
    case ReferenceKind::kDict:
      return 1;
    case ReferenceKind::kWord:
    case ReferenceKind::kStack:
      return 4;
    case ReferenceKind::kKey:
      return 6;
    case ReferenceKind::kState:
    case ReferenceKind::kBack:
      return 8;
    case ReferenceKind::kBases:
      return 20;
    case ReferenceKind::kClass:
      return 25;
    case ReferenceKind::kGlobals:
      return 30;
    case ReferenceKind::kBuiltins:
      return 60;
    default:
      return 2;
  }
}

}  // namespace

ObjectTable::Node ObjectTable::find(std::uint64_t address) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = slot_of(address);; slot = (slot + 1) & mask) {
    const Node node = slots_[slot];
    if (node == kNone || addresses_[node] == address) {
      return node;
    }
  }
}

ObjectTable::Node ObjectTable::add(std::uint64_t address) {
  if (4 * (addresses_.size() + 1) > 3 * slots_.size()) {
    grow();
  }
  const auto node = static_cast<Node>(addresses_.size());
  append(addresses_, address);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = slot_of(address);
  while (slots_[slot] != kNone) {
    slot = (slot + 1) & mask;
  }
  slots_[slot] = node;
  return node;
}

void ObjectTable::grow() {
  slots_.assign(2 * slots_.size(), kNone);
  --shift_;
  const std::size_t mask = slots_.size() - 1;
  for (Node node = 0; node < addresses_.size(); ++node) {
    std::size_t slot = slot_of(addresses_[node]);
    while (slots_[slot] != kNone) {
      slot = (slot + 1) & mask;
    }
    slots_[slot] = node;
  }
}

ObjectGraph::ObjectGraph(ObjectSource& source, std::vector<Root> roots, const GraphLimits& limits)
    : source_(source), roots_(std::move(roots)), buckets_(kBuckets) {
  push_roots(0);
  walk(limits);
  reachable_ = order_.size();
}

void ObjectGraph::add_unreachable(std::vector<Root> roots, const GraphLimits& limits) {
  const std::size_t first = roots_.size();
  roots_.insert(roots_.end(), std::make_move_iterator(roots.begin()),
                std::make_move_iterator(roots.end()));
  push_roots(first);
  walk(limits);
}

void ObjectGraph::push_roots(std::size_t first) {
  for (std::size_t i = first; i < roots_.size() && i < kNone - kFirstRoot; ++i) {
    Node node = table_.find(roots_[i].address);
    if (node == kNone) {
      node = find_or_add({roots_[i].address, 0, "", ReferenceKind::kItem}, {});
    }
    if (node != kNone && !is_settled(node) && distance_ + roots_[i].cost < first_target_[node]) {
      push(node, distance_ + roots_[i].cost, kFirstRoot + static_cast<Node>(i));
    }
  }
}

void ObjectGraph::push(Node node, std::uint32_t distance, Node parent) {
  first_target_[node] = distance;
  parents_[node] = parent;
  buckets_[distance % kBuckets].push_back(node);
  ++waiting_;
}

// By Dijkstra, with a bucket for each distance: what costs less to reach comes first.
void ObjectGraph::walk(const GraphLimits& limits) {
  constexpr std::size_t kBetweenQuestions = 4096;  // objects, or some hundreds of references each
  constexpr std::size_t kReferences = 1U << 20U;
  std::size_t expanded = 0;
  std::size_t asked_at = targets_.size();
  while (waiting_ > 0) {
    std::vector<Node>& bucket = buckets_[distance_ % kBuckets];
    if (bucket.empty()) {
      ++distance_;
      continue;
    }
    const Node node = bucket.back();
    bucket.pop_back();
    --waiting_;
    if (is_settled(node) || first_target_[node] != distance_) {
      continue;  // it was reached on a cheaper way
    }
    if (++expanded % kBetweenQuestions == 0 || targets_.size() - asked_at > kReferences) {
      asked_at = targets_.size();
      is_partial_ = is_partial_ || limits.is_over();
    }
    append(order_, node);
    units_[node] = static_cast<std::uint32_t>(
        std::min<std::uint64_t>((source_.bytes(table_.address(node), types_[node]) + 7) / 8, kFar));
    first_target_[node] = static_cast<std::uint32_t>(targets_.size());
    target_count_[node] = 0;
    if (!is_partial_) {
      expand(node, limits);
    }
  }
}

void ObjectGraph::expand(Node node, const GraphLimits& limits) {
  source_.references(table_.address(node), types_[node],
                     [&](std::span<const Reference> references) {
                       for (const Reference& reference : references) {
                         const Node target = find_or_add(reference, limits);
                         if (target == kNone || target == node) {
                           continue;
                         }
                         if (targets_.size() >= limits.most_references) {
                           is_partial_ = true;
                           return;
                         }
                         ++reference_counts_[node];
                         if (targets_.size() == first_target_[node] || targets_.back() != target) {
                           append(targets_, target);
                         }
                         take_step(reference, node, target);
                       }
                     });
  target_count_[node] = static_cast<std::uint32_t>(targets_.size()) - first_target_[node];
}

void ObjectGraph::take_step(const Reference& reference, Node from, Node to) {
  const bool is_module = type(to).kind == ObjectKind::kModule;
  const std::uint32_t distance = distance_ + cost_of(reference) + (is_module ? kModuleCost : 0);
  if (!is_settled(to) && distance < first_target_[to]) {
    push(to, distance, from);
  }
}

ObjectGraph::Node ObjectGraph::find_or_add(const Reference& reference, const GraphLimits& limits) {
  if (const Node node = table_.find(reference.target); node != kNone) {
    return node;
  }
  if (table_.size() >= limits.most_objects) {
    is_partial_ = true;
    return kNone;
  }
  const PythonTypes::Index type = source_.type_of(reference.target, reference.kind);
  if (type == PythonTypes::kNone) {
    return kNone;
  }
  append(types_, type);
  append(parents_, kFirstRoot);
  append(units_, std::uint32_t{0});
  append(reference_counts_, std::uint32_t{0});
  append(first_target_, kFar);
  append(target_count_, kFar);
  return table_.add(reference.target);
}

std::size_t ObjectGraph::root_index(Node node) const {
  for (std::size_t steps = 0; parents_[node] < kFirstRoot && steps < size(); ++steps) {
    node = parents_[node];
  }
  return parents_[node] - kFirstRoot;
}

const Root& ObjectGraph::root(Node node) const { return roots_[root_index(node)]; }

std::span<const ObjectGraph::Node> ObjectGraph::targets(Node node) const {
  if (!is_settled(node)) {
    return {};
  }
  return std::span(targets_).subspan(first_target_[node], target_count_[node]);
}

std::vector<std::uint64_t> ObjectGraph::bytes_below() const {
  std::vector<std::uint64_t> below(size());
  for (std::size_t i = order_.size(); i-- > 0;) {
    const Node node = order_[i];
    below[node] += bytes(node);
    if (const Node above = parent(node); above != kNone) {
      below[above] += below[node];
    }
  }
  return below;
}

}  // namespace tidemark::heap
