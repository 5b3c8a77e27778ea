// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profiler/reader/module_list.h"
#include "profiler/reader/trace_image.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {

inline constexpr std::size_t kMostFrames = 256;

// The nodes of all stacks, kept from one reading to the next. A node is handed out before it is
// written, and nothing in it says that it is complete; but a site that is ready was published after
// all nodes of its stack. So whoever reads sites first, then nodes, may believe the nodes of those
// sites, and no others: they are read again once a site leads to them.
class StackTree {
 public:
  // Reads the nodes that came since the last call.
  void extend(int fd, const TraceHeader& header);
  // Makes the stack of a site that was ready before extend() was called fit to be walked.
  // `modules` were read after the site.
  void settle(int fd, const TraceHeader& header, std::uint32_t node, const ModuleList& modules);

  std::size_t size() const { return nodes_.size(); }
  // The node numbers from `node` to the root, innermost first; at most kMostFrames.
  std::vector<std::uint32_t> path(std::uint32_t node) const;
  const wire::StackNode& at(std::uint32_t node) const { return nodes_[node]; }
  // The same for all settled nodes with the same frames, of which the tracer may make several: it
  // does not look for every node that it has.
  std::uint64_t identity(std::uint32_t node) const {
    return node < identities_.size() ? identities_[node] : 0;
  }

 private:
  std::vector<wire::StackNode> nodes_;
  std::vector<bool> settled_;
  std::vector<std::uint64_t> identities_;  // 0: not settled, or the root
  std::size_t fresh_from_ = 0;             // nodes from here on were read by the last extend()
};

}  // namespace tidemark::reader
