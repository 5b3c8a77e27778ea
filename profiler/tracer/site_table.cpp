// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/site_table.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::Table;

constexpr std::uint32_t kNone = HashIndex::kNone;
constexpr std::uint32_t kRoot = 0;

std::uint64_t not_zero(std::uint64_t hash) { return hash == 0 ? 1 : hash; }

}  // namespace

std::uint64_t SiteTable::key_of(std::uint64_t hash) const noexcept {
  return not_zero(wire::mix(hash ^ (modules_.generation() * 0x9e3779b97f4a7c15)));
}

std::uint32_t SiteTable::add_node(std::uint64_t pc, std::uint32_t parent) noexcept {
  std::uint64_t number = 0;
  if (!store_.take(Table::kNodes, 1, number) || number >= kNone) {
    return kNone;
  }
  auto& node = *store_.item<wire::StackNode>(Table::kNodes, number);
  node.value = pc;
  node.kind = static_cast<std::uint32_t>(wire::NodeKind::kNative);
  node.parent = parent;
  return static_cast<std::uint32_t>(number);
}

// The innermost frame's node. Most of a new stack is known already: looks for the first frame, from
// the inside, whose callers are, and adds what is inside of it.
std::uint32_t SiteTable::node_of(const StackTrace& trace) noexcept {
  std::uint32_t known = 0;
  std::uint32_t node = kRoot;
  for (; known < trace.depth; ++known) {
    const std::uint32_t found = nodes_.find(key_of(trace.hash[known]));
    if (found != kNone) {
      node = found;
      break;
    }
  }
  for (std::uint32_t i = known; i-- > 0;) {
    modules_.note(trace.pc[i]);  // before its node is there
    node = add_node(trace.pc[i], node);
    if (node == kNone) {
      return kNone;
    }
    nodes_.add(key_of(trace.hash[i]), node);
  }
  return node;
}

std::uint32_t SiteTable::add_site(std::uint32_t node, const StackTrace& trace,
                                  wire::SiteKind kind) noexcept {
  std::uint64_t number = 0;
  if (!store_.take(Table::kSites, 1, number) || number >= kNone) {
    return kNone;
  }
  wire::Site& added = site(static_cast<std::uint32_t>(number));
  added.node = node;
  added.kind = kind;
  added.truncated = trace.truncated ? 1 : 0;
  added.ready.store(1, std::memory_order_release);
  return static_cast<std::uint32_t>(number);
}

std::uint32_t SiteTable::site_of(const StackTrace& trace, wire::SiteKind kind,
                                 std::uint32_t lane) noexcept {
  const std::uint64_t stack = trace.depth == 0 ? 1 : trace.hash[0];
  const std::uint64_t which = (std::uint64_t{lane} << 8U) | static_cast<std::uint64_t>(kind);
  const std::uint64_t hash = stack ^ (which * 0xbf58476d1ce4e5b9);
  std::uint64_t key = key_of(hash);
  if (const std::uint32_t found = sites_.find(key); found != kNone) {
    return found;
  }
  const std::uint32_t node = node_of(trace);
  if (node == kNone) {
    return kNone;
  }
  const std::uint32_t added = add_site(node, trace, kind);
  if (added != kNone) {
    key = key_of(hash);  // the generation may have changed meanwhile
    sites_.add(key, added);
    store_.header()->private_bytes.store(private_bytes(), std::memory_order_relaxed);
  }
  return added;
}

void SiteTable::clear() noexcept {
  nodes_.clear();
  sites_.clear();
}

}  // namespace tidemark::tracer
