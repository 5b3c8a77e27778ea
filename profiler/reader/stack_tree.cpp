// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/stack_tree.h"

#include <algorithm>
#include <optional>

namespace tidemark::reader {
namespace {

bool is_a_kind(std::uint16_t kind) {
  return kind <= static_cast<std::uint16_t>(wire::NodeKind::kThreadStart);
}

// Never written, or cut off with the file.
bool is_empty(const wire::StackNode& node) {
  return node.value == 0 && node.parent == 0 && node.kind == 0;
}

}  // namespace

void StackTree::extend(const TraceHeader& header) {
  table_ = header.table(wire::Table::kNodes);
  size_ = std::max(size_,
                   bounded(header.used(wire::Table::kNodes), readable_end(table_), kMostNodes).end);
  forget();
  window_.clear();
}

const wire::StackNode& StackTree::read(int fd, std::uint32_t node) {
  constexpr std::uint64_t kWindowNodes = 64;
  if (node < window_first_ || node >= window_first_ + window_.size()) {
    window_first_ = node / kWindowNodes * kWindowNodes;
    window_.resize(static_cast<std::size_t>(std::min(kWindowNodes, size_ - window_first_)));
    read_items(fd, table_, window_first_, window_.size(), window_.data());
  }
  return window_[static_cast<std::size_t>(node - window_first_)];
}

void StackTree::settle(int fd, std::uint32_t node, const ModuleList& modules) {
  struct Frame {
    std::uint32_t number = 0;
    wire::StackNode node{};
  };
  std::vector<Frame> inner;
  // No honest stack is longer, and one that leads around in a circle ends there.
  while (node != 0 && node < size_ && identity(node) == 0 && inner.size() < kMostFrames) {
    inner.push_back({node, read(fd, node)});
    node = inner.back().node.parent;
  }
  for (; !inner.empty(); inner.pop_back()) {
    const auto& [number, raw] = inner.back();
    // The same address is another place once another module was loaded there.
    const bool is_native = raw.kind == static_cast<std::uint16_t>(wire::NodeKind::kNative);
    const auto module = is_native ? modules.find(raw.value - 1, raw.modules) : std::nullopt;
    std::uint64_t hash = wire::mix(identity(raw.parent) ^ raw.value);
    hash = wire::mix(hash ^ (std::uint64_t{raw.kind} << 32U) ^ (module ? *module + 1U : 0U));
    identities_[number] = std::max<std::uint64_t>(hash, 1);
  }
}

std::vector<wire::StackNode> StackTree::path(int fd, std::uint32_t node) {
  std::vector<wire::StackNode> path;
  window_.clear();
  while (node != 0 && node < size_ && path.size() < kMostFrames) {
    const wire::StackNode raw = read(fd, node);
    if (!is_a_kind(raw.kind) || is_empty(raw)) {
      break;
    }
    path.push_back(raw);
    node = raw.parent;
  }
  return path;
}

}  // namespace tidemark::reader
