// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/stack_tree.h"

#include "profiler/reader/trace_limits.h"

namespace tidemark::reader {
namespace {

bool is_a_kind(std::uint32_t kind) {
  return kind == static_cast<std::uint32_t>(wire::NodeKind::kNative) ||
         kind == static_cast<std::uint32_t>(wire::NodeKind::kPython);
}

}  // namespace

void StackTree::extend(int fd, const TraceHeader& header) {
  const std::uint64_t known = nodes_.size();
  const TableView& table = header.table(wire::Table::kNodes);
  const std::uint64_t now =
      bounded(header.used(wire::Table::kNodes), readable_end(table), kMostNodes).end;
  fresh_from_ = nodes_.size();
  if (now <= known) {
    return;
  }
  nodes_.resize(static_cast<std::size_t>(now));
  settled_.resize(nodes_.size(), false);
  identities_.resize(nodes_.size(), 0);
  read_items(fd, table, known, now - known, &nodes_[fresh_from_]);
}

void StackTree::settle(int fd, const TraceHeader& header, std::uint32_t node,
                       const ModuleList& modules) {
  std::vector<std::uint32_t> inner;
  while (node != 0 && node < nodes_.size() && !settled_[node]) {
    if (node < fresh_from_) {
      read_items(fd, header.table(wire::Table::kNodes), node, 1, &nodes_[node]);
    }
    settled_[node] = true;
    inner.push_back(node);
    node = nodes_[node].parent;
  }
  for (; !inner.empty(); inner.pop_back()) {
    const std::uint32_t at = inner.back();
    const wire::StackNode& raw = nodes_[at];
    // The same address is another place once another module was loaded there.
    const auto module = modules.find(raw.value - 1, at);
    std::uint64_t hash = wire::mix(identity(raw.parent) ^ raw.value);
    hash = wire::mix(hash ^ (std::uint64_t{raw.kind} << 32U) ^ (module ? *module + 1U : 0U));
    identities_[at] = hash;
  }
}

std::vector<std::uint32_t> StackTree::path(std::uint32_t node) const {
  std::vector<std::uint32_t> path;
  while (node != 0 && node < nodes_.size() && path.size() < kMostFrames &&
         is_a_kind(nodes_[node].kind)) {
    path.push_back(node);
    node = nodes_[node].parent;
  }
  return path;
}

}  // namespace tidemark::reader
