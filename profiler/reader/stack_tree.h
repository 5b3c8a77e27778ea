// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "profiler/reader/module_list.h"
#include "profiler/reader/trace_image.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {

// The tree of all stacks. A node is handed out before it is written, and nothing in it says that it
// is complete; but a site that is ready was published after all nodes of its stack, and they stay
// what they are as long as it is the site of that stack. So nodes are read once a site that was
// read before leads to them, and what they say holds if the site is the same afterwards.
//
// Of a node only its identity is kept, and only until the next extend(). So its memory depends on
// what sites lead to, not on how many nodes the file claims.
class StackTree {
 public:
  static constexpr std::size_t kMostFrames = 256;

  // Forgets what was read, and takes note of the nodes that there are now.
  void extend(const TraceHeader& header);
  // Makes the identity of the stack of a site known. The site was ready before extend() was called,
  // and `modules` were read after it.
  void settle(int fd, std::uint32_t node, const ModuleList& modules);

  // Forgets all identities.
  void forget() { identities_ = {}; }

  // Nodes that the file says it has.
  std::size_t size() const { return static_cast<std::size_t>(size_); }
  // The nodes from `node` to the root, innermost first; at most kMostFrames. Reads them anew.
  std::vector<wire::StackNode> path(int fd, std::uint32_t node);
  // The same for all settled nodes with the same frames, of which the tracer may make several: it
  // does not look for every node that it has. 0: not settled, or the root.
  std::uint64_t identity(std::uint32_t node) const {
    const auto known = identities_.find(node);
    return known == identities_.end() ? 0 : known->second;
  }

 private:
  // The nodes of a stack lie side by side, mostly: they are read some at a time.
  const wire::StackNode& read(int fd, std::uint32_t node);

  TableView table_;
  std::uint64_t size_ = 0;
  std::unordered_map<std::uint32_t, std::uint64_t> identities_;  // of settled nodes
  std::vector<wire::StackNode> window_;
  std::uint64_t window_first_ = 0;
};

}  // namespace tidemark::reader
