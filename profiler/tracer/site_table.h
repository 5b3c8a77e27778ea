// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/tracer/block_sampling.h"
#include "profiler/tracer/bloom_filter.h"
#include "profiler/tracer/hash_index.h"
#include "profiler/tracer/module_table.h"
#include "profiler/tracer/python/code_table.h"
#include "profiler/tracer/python/mixed_stack.h"
#include "profiler/tracer/scratch_pool.h"
#include "profiler/tracer/trace_store.h"
#include "profiler/wire/trace_layout.h"

namespace tidemark::tracer {

// A site, and which of its stacks is meant: a site may become that of another one.
struct SiteRef {
  std::uint32_t number = HashIndex::kNone;  // kNone: there is no room for it
  std::uint32_t ready = 0;                  // wire::Site::ready
};

// Gives each pair of call stack and kind of memory a site, and each frame a node in the tree of
// stacks. Lock-free.
//
// Most stacks of a program that starts soon have freed what they allocated. Once there are many
// sites, one of the heap that allocated little and has freed it becomes the site of the next new
// stack. A site is in use while it has allocated more blocks than it has freed, so a block is
// counted on it before it is in the live table, and freed after it has left it. Who comes to a site
// counts the block first and then looks whether the site is still the one that is meant; who
// recycles one takes `ready` away first and then looks whether a block was counted meanwhile.
//
// A node counts what leads to it, other nodes and sites. Without any it is free, and the next node
// is made of it. A thread that is stopped for ever half-way leaves a site or some nodes unused.
class SiteTable {
 public:
  constexpr SiteTable() noexcept = default;  // to be bound before use
  constexpr SiteTable(TraceStore& store, ModuleTable& modules, PythonCodeTable& codes) noexcept
      : store_(&store), modules_(&modules), codes_(&codes) {}
  void bind(TraceStore& store, ModuleTable& modules, PythonCodeTable& codes) noexcept {
    store_ = &store;
    modules_ = &modules;
    codes_ = &codes;
  }

  // What a stack is told by, beside its frames. Each shard has sites of its own, which the reader
  // adds up, so that threads of different shards never write to one counter.
  struct Owner {
    wire::SiteKind kind;
    std::uint32_t shard;
  };
  // Counts what a stack allocates on its site. `is_new`: it had none before. `last`: of the scratch
  // slot that the stack is in.
  SiteRef count_alloc(const StackView& stack, LastNodes& last, Owner owner, SiteCount count,
                      bool& is_new) noexcept;
  // The same for a site that is known. False: it is another's by now.
  bool count_alloc(SiteRef known, SiteCount count) noexcept;
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
  wire::StackNode* node(std::uint32_t number) const noexcept {
    return store_->item<wire::StackNode>(wire::Table::kNodes, number);
  }
  std::uint32_t node_of(const StackView& stack, LastNodes& last) noexcept;
  std::uint32_t find_known_frames(const StackView& stack, const LastNodes& last,
                                  std::uint32_t& node) noexcept;
  bool hold_node(std::uint32_t number, const StackView& stack, std::uint32_t frame) noexcept;
  void release_node(std::uint32_t number) noexcept;
  std::uint32_t take_node() noexcept;
  void add_modules_of(const StackView& stack, std::uint32_t count) noexcept;
  void write_node(wire::StackNode& node, const StackView& stack, std::uint32_t frame,
                  std::uint32_t parent) noexcept;
  SiteRef take_site() noexcept;
  bool recycle(std::uint32_t number, SiteRef& taken) noexcept;
  void prefetch_for_recycling(std::uint32_t number) const noexcept;

  TraceStore* store_ = nullptr;
  ModuleTable* modules_ = nullptr;
  PythonCodeTable* codes_ = nullptr;
  HashIndex nodes_;
  HashIndex sites_;
  BloomFilter filter_;                              // of the keys in sites_
  std::atomic<std::uint32_t> next_to_recycle_ = 0;  // a site
  std::atomic<std::uint64_t> free_nodes_ =
      0;  // the first one (0: none), and above it a count of changes
};

}  // namespace tidemark::tracer
