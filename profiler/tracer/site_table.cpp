// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/site_table.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::Table;

constexpr std::uint32_t kNone = HashIndex::kNone;
constexpr std::uint32_t kRoot = 0;
constexpr std::uint32_t kManySites = 8192;  // with fewer, the index stays in the cache
constexpr std::uint32_t kRetryEvery = 256;  // sites, until memory for the filter is asked for again

// Identifies the stack from a frame outwards. The mark tells code from other code that was at the
// same address before.
std::uint64_t key_of(const Scratch& scratch, std::size_t frame, std::uint64_t which = 0) {
  const std::uint64_t hash = scratch.trace.depth == 0 ? 1 : scratch.trace.hash[frame];
  const std::uint64_t key = wire::mix(hash ^ scratch.mark(frame) ^ which);
  return key == 0 ? 1 : key;
}

// One key in 16, by bits that are independent of those that the index uses.
bool is_indexed(std::uint64_t key) { return (key * 0x9e3779b97f4a7c15) >> 60U == 0; }

}  // namespace

// How many of the innermost frames have no node yet; `node` is that of the frame after them.
//
// Not every node is found. A new stack mostly shares its outer frames with the last new one of its
// thread, which is looked at first; of all other nodes one in 16 is in the index. A frame whose
// node is not found gets a second one, which is cheaper than an index of all nodes.
std::uint32_t SiteTable::find_known_frames(const Scratch& scratch,
                                           std::uint32_t& node) const noexcept {
  const StackTrace& trace = scratch.trace;
  const LastNodes& last = scratch.nodes;
  for (std::uint32_t i = 0; i < trace.depth; ++i) {
    const std::uint64_t key = key_of(scratch, i);
    const std::size_t place = kMaxFrames - trace.depth + i;
    if (last.hash[place] == key) {
      node = last.node[place];
      return i;
    }
    if (is_indexed(key)) {
      const std::uint32_t found = nodes_.find(key);
      if (found != kNone) {
        node = found;
        return i;
      }
    }
  }
  node = kRoot;
  return trace.depth;
}

// The innermost frame's node.
std::uint32_t SiteTable::node_of(Scratch& scratch) noexcept {
  const StackTrace& trace = scratch.trace;
  std::uint32_t node = kRoot;
  const std::uint32_t missing = find_known_frames(scratch, node);
  if (missing == 0) {
    return node;
  }
  modules_->add_modules_of(trace.pc, missing);  // before the nodes: see wire::Module
  std::uint64_t first = 0;
  if (!store_->take(Table::kNodes, missing, first) || first + missing >= kNone) {
    return kNone;
  }
  auto* const made = store_->item<wire::StackNode>(Table::kNodes, first);
  LastNodes& last = scratch.nodes;
  if (missing <
      trace.depth) {  // only the first known frame: those further out may be of another stack
    const std::size_t place = kMaxFrames - trace.depth + missing;
    last.hash[place] = key_of(scratch, missing);
    last.node[place] = node;
  }
  for (std::uint32_t i = missing; i-- > 0;) {
    const std::uint32_t added = missing - 1 - i;
    made[added] = {trace.pc[i], node, static_cast<std::uint32_t>(wire::NodeKind::kNative)};
    node = static_cast<std::uint32_t>(first) + added;
    const std::uint64_t key = key_of(scratch, i);
    const std::size_t place = kMaxFrames - trace.depth + i;
    last.hash[place] = key;
    last.node[place] = node;
    if (is_indexed(key)) {
      nodes_.add(key, node);
    }
  }
  return node;
}

std::uint32_t SiteTable::add_site(std::uint32_t node, const StackTrace& trace,
                                  wire::SiteKind kind) noexcept {
  std::uint64_t number = 0;
  if (!store_->take(Table::kSites, 1, number) || number >= kNone) {
    return kNone;
  }
  wire::Site& added = *site(static_cast<std::uint32_t>(number));
  added.node = node;
  added.kind = kind;
  added.truncated = trace.truncated ? 1 : 0;
  added.ready.store(1, std::memory_order_release);
  return static_cast<std::uint32_t>(number);
}

std::uint32_t SiteTable::site_of(Scratch& scratch, wire::SiteKind kind, std::uint32_t shard,
                                 bool& is_new) noexcept {
  const StackTrace& trace = scratch.trace;
  modules_->recheck(trace.pc, trace.depth);
  scratch.is_marked = modules_->marks(trace.pc, trace.depth, scratch.marks);
  const std::uint64_t which = (std::uint64_t{shard} << 8U) | static_cast<std::uint64_t>(kind);
  const std::uint64_t key = key_of(scratch, 0, which * 0xbf58476d1ce4e5b9);
  sites_.prefetch(key);
  const std::uint32_t found = filter_.may_hold(key) ? sites_.find(key) : kNone;
  is_new = found == kNone;
  if (!is_new) {
    return found;
  }
  // Before the nodes are made, which would else be made again each time that this stack comes.
  if (!sites_.has_room() || !store_->has_room(Table::kSites)) {
    return kNone;
  }
  const std::uint32_t node = node_of(scratch);
  if (node == kNone) {
    return kNone;
  }
  const std::uint32_t added = add_site(node, trace, kind);
  if (added != kNone) {
    sites_.add(key, added);
    filter_.add(key);
    if (added >= kManySites && added % kRetryEvery == 0 && filter_.bytes() == 0) {
      filter_.enable([this](auto visit) { sites_.for_each_hash(visit); });
    }
  }
  return added;
}

void SiteTable::grow_ahead() noexcept {
  nodes_.grow_ahead();
  sites_.grow_ahead();
}

void SiteTable::clear() noexcept {
  nodes_.clear();
  sites_.clear();
  filter_.clear();
}

}  // namespace tidemark::tracer
