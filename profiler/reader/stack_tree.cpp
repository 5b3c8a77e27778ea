// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/stack_tree.h"

#include <algorithm>
#include <optional>

namespace tidemark::reader {
namespace {

bool is_a_kind(std::uint32_t kind) {
  return kind == static_cast<std::uint32_t>(wire::NodeKind::kNative) ||
         kind == static_cast<std::uint32_t>(wire::NodeKind::kPython);
}

}  // namespace

const StackTree::Block* StackTree::block_of(std::uint32_t node) const {
  return node < size_ ? blocks_[node / kBlockNodes].get() : nullptr;
}

const wire::StackNode& StackTree::at(std::uint32_t node) const {
  static constexpr wire::StackNode kNothing{};
  const Block* const block = block_of(node);
  return block == nullptr ? kNothing : block->nodes[node % kBlockNodes];
}

std::uint64_t StackTree::identity(std::uint32_t node) const {
  const Block* const block = block_of(node);
  return block == nullptr ? 0 : block->identities[node % kBlockNodes];
}

void StackTree::extend(int fd, const TraceHeader& header) {
  const TableView& table = header.table(wire::Table::kNodes);
  const std::uint64_t now =
      bounded(header.used(wire::Table::kNodes), readable_end(table), kMostNodes).end;
  fresh_from_ = size_;
  if (now <= size_) {
    return;
  }
  std::uint64_t first = size_;
  size_ = now;
  blocks_.resize(static_cast<std::size_t>((now + kBlockNodes - 1) / kBlockNodes));
  while ((first = next_item_with_data(fd, table, first)) < now) {
    std::unique_ptr<Block>& block = blocks_[static_cast<std::size_t>(first / kBlockNodes)];
    if (block == nullptr) {
      block = std::make_unique<Block>();
    }
    const std::uint64_t end = std::min(now, (first / kBlockNodes + 1) * kBlockNodes);
    read_items(fd, table, first, end - first, &block->nodes[first % kBlockNodes]);
    first = end;
  }
}

StackTree::Block* StackTree::settle_node(int fd, const TraceHeader& header, std::uint32_t node) {
  std::unique_ptr<Block>& block = blocks_[node / kBlockNodes];
  if (node < fresh_from_ && (block == nullptr || !block->is_settled[node % kBlockNodes])) {
    const TableView& table = header.table(wire::Table::kNodes);
    if (block == nullptr && next_item_with_data(fd, table, node) == node) {
      block = std::make_unique<Block>();
    }
    if (block != nullptr) {
      read_items(fd, table, node, 1, &block->nodes[node % kBlockNodes]);
    }
  }
  return block.get();
}

void StackTree::settle(int fd, const TraceHeader& header, std::uint32_t node,
                       const ModuleList& modules) {
  std::vector<std::uint32_t> inner;
  while (node != 0 && node < size_) {
    Block* const block = settle_node(fd, header, node);
    if (block == nullptr || block->is_settled[node % kBlockNodes]) {
      break;
    }
    block->is_settled[node % kBlockNodes] = true;
    inner.push_back(node);
    node = block->nodes[node % kBlockNodes].parent;
  }
  for (; !inner.empty(); inner.pop_back()) {
    const std::uint32_t settled = inner.back();
    Block& block = *blocks_[settled / kBlockNodes];
    const wire::StackNode& raw = block.nodes[settled % kBlockNodes];
    // The same address is another place once another module was loaded there.
    const auto module = modules.find(raw.value - 1, settled);
    std::uint64_t hash = wire::mix(identity(raw.parent) ^ raw.value);
    hash = wire::mix(hash ^ (std::uint64_t{raw.kind} << 32U) ^ (module ? *module + 1U : 0U));
    block.identities[settled % kBlockNodes] = hash;
  }
}

std::vector<std::uint32_t> StackTree::path(std::uint32_t node) const {
  std::vector<std::uint32_t> path;
  while (node != 0 && block_of(node) != nullptr && path.size() < kMostFrames &&
         is_a_kind(at(node).kind)) {
    path.push_back(node);
    node = at(node).parent;
  }
  return path;
}

}  // namespace tidemark::reader
