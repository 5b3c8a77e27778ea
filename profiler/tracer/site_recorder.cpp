// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/site_recorder.h"

#include "profiler/tracer/unwind/libunwind_fallback.h"
#include "profiler/tracer/unwind/unwind.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::Losses;
using wire::Mode;

// The bounds of the object that this code is linked into.
extern "C" {
[[gnu::visibility("hidden")]] extern const char __ehdr_start[];  // NOLINT: the linker's names
[[gnu::visibility("hidden")]] extern const char etext[];         // NOLINT
}

bool is_tracer_code(std::uint64_t pc) noexcept {
  return pc >= reinterpret_cast<std::uint64_t>(__ehdr_start) &&
         pc < reinterpret_cast<std::uint64_t>(etext);
}

}  // namespace

void SiteRecorder::bind(bool libunwind) noexcept {
  libunwind_ = libunwind;
  modules_.bind(store_);
  sites_.bind(store_, modules_);
}

void SiteRecorder::abandon(bool unmap) noexcept {
  store_.abandon(unmap);
  modules_.clear();
  sites_.clear();
  scratch_.clear();
  ++file_;
}

void SiteRecorder::grow_ahead() noexcept {
  sites_.grow_ahead();
  scratch_.grow_ahead();
  if (mode() == Mode::kExact) {
    cache_.enable();
  }
}

bool SiteRecorder::resume_after_longjmp(HookScope& scope, const Registers& caller) noexcept {
  bool inside = true;
  if (Scratch* const scratch = scratch_.claim()) {
    StackTrace& trace = scratch->trace;
    unwind(caller, stack_bounds(caller.sp), trace);
    inside = trace.depth == 0;
    for (std::uint32_t i = 0; i < trace.depth; ++i) {
      inside = inside || is_tracer_code(trace.pc[i]);
    }
    scratch_.give_back(*scratch);
  }
  if (inside) {
    count_loss(&Losses::reentered);
    return false;
  }
  scope.make_outermost();
  return true;
}

// Threads that run at the same time mostly count on sites of different shards.
std::uint32_t SiteRecorder::shard() noexcept {
  constexpr std::uint32_t kShards = 4;
  if (t_thread.shard == 0) {
    t_thread.shard = 1 + next_shard_.fetch_add(1, std::memory_order_relaxed) % kShards;
  }
  return t_thread.shard - 1;
}

std::uint32_t SiteRecorder::site_of(wire::SiteKind kind, const Registers& caller) noexcept {
  const StackBounds bounds = stack_bounds(caller.sp);
  if (mode() != Mode::kExact || libunwind_) {
    return walk_to_site(kind, 0, caller, {0, bounds, false});
  }
  // Where every block is recorded, nearly all stacks were seen before. Not while a program starts:
  // after many stacks in a row that are not in the cache, only one in kOneIn is looked up there.
  constexpr std::uint32_t kMany = 32;
  constexpr std::uint32_t kOneIn = 32;
  const std::uint32_t shard = this->shard();
  const std::uint64_t which = (std::uint64_t{file_} << 32U) | (std::uint64_t{shard} << 8U) |
                              static_cast<std::uint64_t>(kind);
  // Multiplied, so that another shard cannot look like another caller.
  const std::uint64_t context = modules_.generation() ^ (which * 0xbf58476d1ce4e5b9);
  const bool is_wanted = t_thread.uncached_stacks < kMany || t_thread.uncached_stacks % kOneIn == 0;
  std::uint32_t known = 0;
  if (is_wanted && cache_.find(caller, bounds, context, modules_.closed_range(), known)) {
    t_thread.uncached_stacks = 0;
    return known;
  }
  ++t_thread.uncached_stacks;
  return walk_to_site(kind, shard, caller, {context, bounds, is_wanted});
}

// The cache gets its memory only when it is worth that: a small program comes to few stacks, and a
// process with a limit of its memory needs that for itself. Where there was none, it is asked for
// again later.
void SiteRecorder::add_to_cache(const Registers& caller, const CacheKey& key,
                                const StackTrace& trace, std::uint32_t site) noexcept {
  constexpr std::uint32_t kWorthIt = 64;
  if (!cache_.is_enabled() &&
      uncached_.fetch_add(1, std::memory_order_relaxed) % kWorthIt == kWorthIt - 1) {
    cache_.enable();
  }
  cache_.add(caller, key.bounds, key.context, trace, site);
}

std::uint32_t SiteRecorder::walk_to_site(wire::SiteKind kind, std::uint32_t shard,
                                         const Registers& caller, const CacheKey& key) noexcept {
  Scratch* const scratch = scratch_.claim();
  if (scratch == nullptr) {
    count_loss(&Losses::sites_full);
    return HashIndex::kNone;
  }
  StackTrace& trace = scratch->trace;
  if (libunwind_) {
    unwind_with_libunwind(caller, trace);
  } else {
    unwind(caller, key.bounds, trace);
  }
  if (trace.depth == 0) {
    count_loss(&Losses::empty_stacks);
  }
  if (trace.truncated) {
    count_loss(&Losses::truncated_stacks);
  }
  bool is_new = false;
  const std::uint32_t site = sites_.site_of(*scratch, kind, shard, is_new);
  if (site == HashIndex::kNone) {
    count_loss(&Losses::sites_full);
  } else if (key.is_wanted && !is_new) {  // not at its first time: many stacks come only once
    add_to_cache(caller, key, trace, site);
  }
  if (is_new || key.is_wanted) {
    store_.header()->private_bytes.store(sites_.private_bytes() + cache_.bytes(),
                                         std::memory_order_relaxed);
  }
  scratch_.give_back(*scratch);
  return site;
}

}  // namespace tidemark::tracer
