// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "profiler/reader/module_list.h"
#include "profiler/reader/trace_image.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {

// The tree of all stacks. A node is handed out before it is written, and nothing in it says that it
// is complete; but a site that is ready was published after all nodes of its stack. So nodes are
// read once a site that was read before leads to them.
//
// Of a node only its identity is kept: there are millions, and few stacks are ever named. So its
// memory depends on what sites lead to, not on how many nodes the file claims.
class StackTree {
 public:
  static constexpr std::size_t kMostFrames = 256;

  struct Frame {
    std::uint32_t number = 0;
    wire::StackNode node{};
  };

  // Takes note of the nodes that came since the last call.
  void extend(const TraceHeader& header);
  // Makes the identity of the stack of a site known. The site was ready before extend() was called,
  // and `modules` were read after it.
  void settle(int fd, std::uint32_t node, const ModuleList& modules);

  // Nodes that the file says it has.
  std::size_t size() const { return static_cast<std::size_t>(size_); }
  // The nodes from `node` to the root, innermost first; at most kMostFrames.
  std::vector<Frame> path(int fd, std::uint32_t node);
  // The same for all settled nodes with the same frames, of which the tracer may make several: it
  // does not look for every node that it has. 0: not settled, or the root.
  std::uint64_t identity(std::uint32_t node) const {
    const Block* const block = node < size_ ? blocks_[node / kBlockNodes].get() : nullptr;
    return block == nullptr ? 0 : (*block)[node % kBlockNodes];
  }

 private:
  static constexpr std::size_t kBlockNodes = 1024;
  using Block = std::array<std::uint64_t, kBlockNodes>;  // identities

  // The nodes of a stack lie side by side, mostly: they are read some at a time.
  const wire::StackNode& read(int fd, std::uint32_t node);

  TableView table_;
  std::uint64_t size_ = 0;
  std::vector<std::unique_ptr<Block>> blocks_;  // nullptr: no node of it is settled
  std::vector<wire::StackNode> window_;         // since the last extend()
  std::uint64_t window_first_ = 0;
};

}  // namespace tidemark::reader
