// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/tracer/bloom_filter.h"
#include "profiler/tracer/hash_index.h"
#include "profiler/tracer/module_table.h"
#include "profiler/tracer/scratch_pool.h"
#include "profiler/tracer/trace_store.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

// Gives each pair of call stack and kind of memory a site, and each frame a node in the tree of
// stacks. Lock-free.
class SiteTable {
 public:
  constexpr SiteTable() noexcept = default;  // to be bound before use
  constexpr SiteTable(TraceStore& store, ModuleTable& modules) noexcept
      : store_(&store), modules_(&modules) {}
  void bind(TraceStore& store, ModuleTable& modules) noexcept {
    store_ = &store;
    modules_ = &modules;
  }

  // The number of the site; HashIndex::kNone: there is no room for it. Each shard has sites of its
  // own, which the reader adds up, so that threads of different shards never write to one counter.
  // `is_new`: this stack was not seen before.
  std::uint32_t site_of(Scratch& scratch, wire::SiteKind kind, std::uint32_t shard,
                        bool& is_new) noexcept;
  // nullptr: there is no such site in this file.
  wire::Site* site(std::uint32_t number) const noexcept {
    return store_->item<wire::Site>(wire::Table::kSites, number);
  }

  // Makes room for a time when there is no memory.
  void grow_ahead() noexcept;
  void clear() noexcept;  // in a forked child, which has tables of its own
  std::uint64_t private_bytes() const noexcept {
    return nodes_.bytes() + sites_.bytes() + filter_.bytes();
  }

 private:
  std::uint32_t node_of(Scratch& scratch) noexcept;
  std::uint32_t find_known_frames(const Scratch& scratch, std::uint32_t& node) const noexcept;
  std::uint32_t add_site(std::uint32_t node, const StackTrace& trace, wire::SiteKind kind) noexcept;
  TraceStore* store_ = nullptr;
  ModuleTable* modules_ = nullptr;
  HashIndex nodes_;
  HashIndex sites_;
  BloomFilter filter_;  // of the keys in sites_
};

}  // namespace tidemark::tracer
