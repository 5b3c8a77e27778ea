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
// A program with fewer sites keeps them all. Of those that came often or were large, what they
// counted is worth keeping.
constexpr std::uint32_t kRecycleFrom = 4096;
constexpr std::uint64_t kFewBlockUnits = 8 * wire::kBlockUnit;
constexpr std::uint64_t kFewBytes = 64 << 10U;

// Identifies the stack from a frame outwards. The mark tells code from other code that was at the
// same address before.
std::uint64_t key_of(const StackView& stack, std::size_t frame, std::uint64_t which = 0) {
  const std::uint64_t hash = stack.depth == 0 ? 1 : stack.hash[frame];
  const std::uint64_t mark = stack.depth == 0 || stack.mark == nullptr ? 0 : stack.mark[frame];
  const std::uint64_t key = wire::mix(hash ^ mark ^ which);
  return key == 0 ? 1 : key;
}

// What a site and a node keep of their key; enough to remove it from its index.
std::uint32_t check_of(std::uint64_t key) { return static_cast<std::uint32_t>(key); }

// One key in 16, by bits that do not choose its bucket in the index.
bool is_indexed(std::uint32_t check) { return check >> 28U == 0; }

// Of fields that another thread may be writing for another stack: what is read is checked after it.
template <typename T>
T load(T& field) noexcept {
  return std::atomic_ref(field).load(std::memory_order_relaxed);
}
template <typename T>
void store(T& field, T value) noexcept {
  std::atomic_ref(field).store(value, std::memory_order_relaxed);
}

void count_bytes(wire::Site& site, std::uint64_t bytes) noexcept {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const std::uint64_t total = site.alloc_bytes.fetch_add(bytes, kRelaxed) + bytes;
  const std::uint64_t freed = site.free_bytes.load(kRelaxed);
  const std::uint64_t live = total > freed ? total - freed : 0;
  std::uint64_t peak = site.peak_live_bytes.load(kRelaxed);
  while (live > peak && !site.peak_live_bytes.compare_exchange_weak(peak, live, kRelaxed)) {
  }
}

}  // namespace

// For a new node or site that leads to it. False: it is free, or that of another frame by now.
bool SiteTable::hold_node(std::uint32_t number, const StackView& stack,
                          std::uint32_t frame) noexcept {
  wire::StackNode* const known = node(number);
  if (known == nullptr) {
    return false;
  }
  const std::atomic_ref uses(known->uses);
  std::uint32_t count = uses.load(std::memory_order_relaxed);
  do {
    if (count == 0) {
      return false;
    }
  } while (!uses.compare_exchange_weak(count, count + 1, std::memory_order_acquire));
  if (known->check == check_of(key_of(stack, frame)) &&
      (!stack.is_native(frame) || known->value == stack.value[frame])) {
    return true;
  }
  release_node(number);
  return false;
}

void SiteTable::release_node(std::uint32_t number) noexcept {
  while (number != kRoot) {
    wire::StackNode* const unused = node(number);
    if (unused == nullptr ||
        std::atomic_ref(unused->uses).fetch_sub(1, std::memory_order_acq_rel) != 1) {
      return;
    }
    const std::atomic_ref parent(unused->parent);
    const std::uint32_t outer = parent.load(std::memory_order_relaxed);
    if (is_indexed(unused->check)) {
      nodes_.remove(unused->check, number);
    }
    std::uint64_t first = free_nodes_.load(std::memory_order_relaxed);
    do {
      parent.store(static_cast<std::uint32_t>(first), std::memory_order_relaxed);
    } while (!free_nodes_.compare_exchange_weak(first, ((first >> 32U) + 1) << 32U | number,
                                                std::memory_order_release,
                                                std::memory_order_relaxed));
    number = outer;
  }
}

// A free one, or one more. kNone: there is no room.
std::uint32_t SiteTable::take_node() noexcept {
  std::uint64_t first = free_nodes_.load(std::memory_order_acquire);
  while (static_cast<std::uint32_t>(first) != 0) {
    wire::StackNode* const taken = node(static_cast<std::uint32_t>(first));
    if (taken == nullptr) {
      return kNone;  // the file is damaged
    }
    const std::uint64_t next = std::atomic_ref(taken->parent).load(std::memory_order_relaxed);
    if (free_nodes_.compare_exchange_weak(first, ((first >> 32U) + 1) << 32U | next,
                                          std::memory_order_acquire)) {
      return static_cast<std::uint32_t>(first);
    }
  }
  std::uint64_t number = 0;
  return store_->take(Table::kNodes, 1, number) && number < kNone
             ? static_cast<std::uint32_t>(number)
             : kNone;
}

// How many of the innermost frames have no node yet; `node` is that of the frame after them, and is
// held.
//
// Not every node is found. A new stack mostly shares its outer frames with the last new one of its
// thread, which is looked at first; of all other nodes one in 16 is in the index. A frame whose
// node is not found gets a second one, which is cheaper than an index of all nodes.
std::uint32_t SiteTable::find_known_frames(const StackView& stack, const LastNodes& last,
                                           std::uint32_t& node) noexcept {
  for (std::uint32_t i = 0; i < stack.depth; ++i) {
    const std::uint64_t key = key_of(stack, i);
    const std::size_t place = kMaxStack - stack.depth + i;
    node = last.node[place];
    if (last.hash[place] == key && hold_node(node, stack, i)) {
      return i;
    }
    if (is_indexed(check_of(key))) {
      node = nodes_.find(key);
      if (node != kNone && hold_node(node, stack, i)) {
        return i;
      }
    }
  }
  node = kRoot;
  if (wire::StackNode* const origin = stack.origin == kRoot ? nullptr : this->node(stack.origin)) {
    std::atomic_ref(origin->uses).fetch_add(1, std::memory_order_relaxed);  // its site holds it
    node = stack.origin;
  }
  return stack.depth;
}

// Of the native ones among the `count` innermost frames.
void SiteTable::add_modules_of(const StackView& stack, std::uint32_t count) noexcept {
  for (std::uint32_t begin = 0; begin < count;) {
    std::uint32_t end = begin;
    while (end < count && stack.is_native(end)) {
      ++end;
    }
    modules_->add_modules_of(stack.value + begin, end - begin);
    begin = end + 1;
  }
}

void SiteTable::write_node(wire::StackNode& node, const StackView& stack, std::uint32_t frame,
                           std::uint32_t parent) noexcept {
  if (stack.is_native(frame)) {
    node.value = stack.value[frame];
    node.kind = static_cast<std::uint16_t>(wire::NodeKind::kNative);
  } else if (stack.python[frame] == StackView::kThreadStart) {
    node.value = 0;
    node.kind = static_cast<std::uint16_t>(wire::NodeKind::kThreadStart);
  } else {
    const PythonFrame& python = stack.frames->frame[stack.python[frame]];
    node.value = wire::pack_python(codes_->number_of(python), python.unit);
    node.kind = static_cast<std::uint16_t>(wire::NodeKind::kPython);
  }
  constexpr std::uint64_t kMost = 0xffff;
  const std::uint64_t modules = store_->used(Table::kModules);
  node.modules = static_cast<std::uint16_t>(modules < kMost ? modules : kMost);
  node.check = check_of(key_of(stack, frame));
  std::atomic_ref(node.parent).store(parent, std::memory_order_relaxed);
  std::atomic_ref(node.uses).store(1, std::memory_order_release);
}

// The innermost frame's node, which is held. kNone: there is no room.
std::uint32_t SiteTable::node_of(const StackView& stack, LastNodes& last) noexcept {
  std::uint32_t outer = kRoot;
  const std::uint32_t missing = find_known_frames(stack, last, outer);
  if (missing == 0) {
    return outer;
  }
  add_modules_of(stack, missing);  // before the nodes: see wire::Module
  if (missing < stack.depth) {
    // Only the first known frame: those further out may be of another stack.
    const std::size_t place = kMaxStack - stack.depth + missing;
    last.hash[place] = key_of(stack, missing);
    last.node[place] = outer;
  }
  for (std::uint32_t i = missing; i-- > 0;) {
    const std::uint32_t added = take_node();
    if (added == kNone) {
      release_node(outer);
      return kNone;
    }
    write_node(*node(added), stack, i, outer);
    const std::uint64_t key = key_of(stack, i);
    const std::size_t place = kMaxStack - stack.depth + i;
    last.hash[place] = key;
    last.node[place] = added;
    if (is_indexed(check_of(key))) {
      nodes_.add(key, added);
    }
    outer = added;
  }
  return outer;
}

// True: the site is nobody's now, and all zero but for `ready` of the next stack, which is in
// `taken`, and for blocks that are counted on it by mistake for a moment.
bool SiteTable::recycle(std::uint32_t number, SiteRef& taken) noexcept {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  wire::Site* const old = site(number);
  if (old == nullptr) {
    return false;
  }
  std::uint32_t ready = old->ready.load(std::memory_order_acquire);
  const auto is_unused = [old] {
    const std::uint64_t allocated = old->alloc_block_units.load();
    return allocated < kFewBlockUnits && allocated == old->free_block_units.load();
  };
  if (ready == 0 || load(old->kind) != wire::SiteKind::kHeap || !is_unused() ||
      old->alloc_bytes.load(kRelaxed) >= kFewBytes ||
      !old->ready.compare_exchange_strong(ready, 0)) {
    return false;
  }
  if (!is_unused()) {
    old->ready.store(ready, std::memory_order_release);
    return false;
  }
  const std::uint64_t units = old->free_block_units.load(std::memory_order_acquire);
  wire::RecycledSites& sums = store_->header()->recycled;
  sums.sites.fetch_add(1, kRelaxed);
  sums.bytes.fetch_add(old->alloc_bytes.load(kRelaxed), kRelaxed);
  sums.block_units.fetch_add(units, kRelaxed);
  sums.temporary_block_units.fetch_add(old->temporary_block_units.load(kRelaxed), kRelaxed);
  sites_.remove(old->check, number);
  release_node(old->node);
  old->alloc_block_units.fetch_sub(units, kRelaxed);  // others may add and subtract: not set to 0
  for (auto* const counter : {&old->alloc_bytes, &old->free_bytes, &old->free_block_units,
                              &old->peak_live_bytes, &old->temporary_block_units}) {
    counter->store(0, kRelaxed);
  }
  taken = {number, ready + 1 == 0 ? 1 : ready + 1};
  return true;
}

// What recycle() will need of the next site, which is mostly in none of the caches.
void SiteTable::prefetch_for_recycling(std::uint32_t number) const noexcept {
  wire::Site* const next = site(number);
  if (next != nullptr && next->alloc_block_units.load(std::memory_order_relaxed) ==
                             next->free_block_units.load(std::memory_order_relaxed)) {
    sites_.prefetch(load(next->check));
    __builtin_prefetch(node(load(next->node)), 1);
  }
}

// A site for a new stack: one that is no longer used, if one of the next few is such, else one
// more.
SiteRef SiteTable::take_site() noexcept {
  constexpr int kTries = 8;
  const std::uint64_t used = store_->used(Table::kSites);
  for (int i = 0; i < kTries && used >= kRecycleFrom; ++i) {
    std::uint32_t next = next_to_recycle_.fetch_add(1, std::memory_order_relaxed);
    if (next >= used) {
      next = 0;
      next_to_recycle_.store(1, std::memory_order_relaxed);
    }
    if (SiteRef taken; recycle(next, taken)) {
      prefetch_for_recycling(next + 1);
      return taken;
    }
  }
  std::uint64_t number = 0;
  if (!store_->take(Table::kSites, 1, number) || number >= kNone) {
    return {};
  }
  return {static_cast<std::uint32_t>(number), 1};
}

bool SiteTable::count_alloc(SiteRef known, SiteCount count) noexcept {
  wire::Site* const counted = site(known.number);
  if (counted == nullptr) {
    return false;
  }
  counted->alloc_block_units.fetch_add(count.block_units);
  if (counted->ready.load() != known.ready) [[unlikely]] {
    counted->alloc_block_units.fetch_sub(count.block_units);
    return false;
  }
  count_bytes(*counted, count.bytes);
  return true;
}

SiteRef SiteTable::count_alloc(const StackView& stack, LastNodes& last, Owner owner,
                               SiteCount count, bool& is_new) noexcept {
  const std::uint64_t which =
      (std::uint64_t{owner.shard} << 8U) | static_cast<std::uint64_t>(owner.kind);
  const std::uint64_t key = key_of(stack, 0, which * 0xbf58476d1ce4e5b9);
  sites_.prefetch(key);
  is_new = false;
  const std::uint32_t found = filter_.may_hold(key) ? sites_.find(key) : kNone;
  if (wire::Site* const there = found == kNone ? nullptr : site(found)) {
    const SiteRef known = {found, there->ready.load(std::memory_order_acquire)};
    if (known.ready != 0 && load(there->check) == check_of(key) && count_alloc(known, count)) {
      return known;
    }
    sites_.remove(key, found);
  }
  is_new = true;
  if (!sites_.has_room()) {
    return {};
  }
  const SiteRef taken = take_site();
  if (taken.number == kNone) {
    return {};
  }
  const std::uint32_t node = node_of(stack, last);
  wire::Site& added = *site(taken.number);
  store(added.node, node == kNone ? kRoot : node);
  store(added.kind, node == kNone ? wire::SiteKind::kHeap : owner.kind);
  added.truncated = stack.truncated ? 1 : 0;
  store(added.check, check_of(key));
  if (node == kNone) {  // can be recycled
    added.ready.store(taken.ready, std::memory_order_release);
    return {};
  }
  added.alloc_block_units.fetch_add(count.block_units);  // first: from here on it is in use
  added.ready.store(taken.ready, std::memory_order_release);
  count_bytes(added, count.bytes);
  sites_.add(key, taken.number);
  filter_.add(key);
  if (taken.number >= kManySites && taken.number % kRetryEvery == 0 && filter_.bytes() == 0) {
    filter_.enable([this](auto visit) { sites_.for_each_hash(visit); });
  }
  return taken;
}

void SiteTable::grow_ahead() noexcept {
  nodes_.grow_ahead();
  sites_.grow_ahead();
}

void SiteTable::clear() noexcept {
  nodes_.clear();
  sites_.clear();
  filter_.clear();
  next_to_recycle_.store(0, std::memory_order_relaxed);
  free_nodes_.store(0, std::memory_order_relaxed);
}

}  // namespace tidemark::tracer
