// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "profiler/reader/module_list.h"
#include "profiler/reader/trace_image.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::reader {

// The nodes of all stacks, kept from one reading to the next. A node is handed out before it is
// written, and nothing in it says that it is complete; but a site that is ready was published after
// all nodes of its stack. So whoever reads sites first, then nodes, may believe the nodes of those
// sites, and no others: they are read again once a site leads to them.
//
// Its memory depends on what of the file is really there, not on how many nodes it claims.
class StackTree {
 public:
  static constexpr std::size_t kMostFrames = 256;

  // Reads the nodes that came since the last call.
  void extend(int fd, const TraceHeader& header);
  // Makes the stack of a site that was ready before extend() was called fit to be walked.
  // `modules` were read after the site.
  void settle(int fd, const TraceHeader& header, std::uint32_t node, const ModuleList& modules);

  // Nodes that the file says it has.
  std::size_t size() const { return static_cast<std::size_t>(size_); }
  // The node numbers from `node` to the root, innermost first; at most kMostFrames.
  std::vector<std::uint32_t> path(std::uint32_t node) const;
  const wire::StackNode& at(std::uint32_t node) const;
  // The same for all settled nodes with the same frames, of which the tracer may make several: it
  // does not look for every node that it has. 0: not settled, or the root.
  std::uint64_t identity(std::uint32_t node) const;

 private:
  static constexpr std::size_t kBlockNodes = 1024;

  struct Block {
    std::array<wire::StackNode, kBlockNodes> nodes{};
    std::array<std::uint64_t, kBlockNodes> identities{};
    std::bitset<kBlockNodes> is_settled;
  };
  // nullptr: it lies in a hole of the file, or behind its end.
  const Block* block_of(std::uint32_t node) const;
  // The node, read again if need be; nullptr: it was never written.
  Block* settle_node(int fd, const TraceHeader& header, std::uint32_t node);

  std::vector<std::unique_ptr<Block>> blocks_;
  std::uint64_t size_ = 0;
  std::uint64_t fresh_from_ = 0;  // nodes from here on were read by the last extend()
};

}  // namespace tidemark::reader
