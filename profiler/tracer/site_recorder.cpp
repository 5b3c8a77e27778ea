// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/site_recorder.h"

#include "profiler/tracer/fixed_text.h"
#include "profiler/tracer/unwind/libunwind_fallback.h"
#include "profiler/tracer/unwind/unwind.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::Losses;
using wire::Mode;
using PythonState = wire::PythonFramesState;

static_assert(static_cast<int>(PythonInterpreter::State::kNone) ==
              static_cast<int>(PythonState::kNone));
static_assert(static_cast<int>(PythonInterpreter::State::kFound) ==
              static_cast<int>(PythonState::kWaiting));
static_assert(static_cast<int>(PythonInterpreter::State::kOn) ==
              static_cast<int>(PythonState::kWalked));
static_assert(static_cast<int>(PythonInterpreter::State::kOff) ==
              static_cast<int>(PythonState::kOff));

// The bounds of the object that this code is linked into.
extern "C" {
[[gnu::visibility("hidden")]] extern const char __ehdr_start[];  // NOLINT: the linker's names
[[gnu::visibility("hidden")]] extern const char etext[];         // NOLINT
}

bool is_tracer_code(std::uint64_t pc) noexcept {
  return pc >= reinterpret_cast<std::uint64_t>(__ehdr_start) &&
         pc < reinterpret_cast<std::uint64_t>(etext);
}

// As the cache keeps it.
std::uint64_t pack_site(SiteRef site) noexcept {
  return std::uint64_t{site.ready} << 32U | site.number;
}
SiteRef unpack_site(std::uint64_t packed) noexcept {
  return {static_cast<std::uint32_t>(packed), static_cast<std::uint32_t>(packed >> 32U)};
}

}  // namespace

void SiteRecorder::bind(bool libunwind) noexcept {
  libunwind_ = libunwind;
  modules_.bind(store_, python_);
  codes_.bind(store_, python_);
  sites_.bind(store_, modules_, codes_);
}

void SiteRecorder::abandon(bool unmap) noexcept {
  store_.abandon(unmap);
  modules_.clear();
  python_.on_fork();
  codes_.clear();
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

std::uint32_t SiteRecorder::count_alloc(wire::SiteKind kind, const Registers& caller,
                                        SiteCount count) noexcept {
  const StackBounds bounds = stack_bounds(caller.sp);
  if (mode() != Mode::kExact || libunwind_) {
    return walk_to_site({kind, 0}, caller, {0, bounds, false}, count);
  }
  // Where every block is recorded, nearly all stacks were seen before. Not while a program starts:
  // after many stacks in a row that are not in the cache, only one in kOneIn is looked up there.
  constexpr std::uint32_t kMany = 32;
  constexpr std::uint32_t kOneIn = 32;
  const std::uint32_t shard = this->shard();
  const std::uint64_t which = (std::uint64_t{file_} << 32U) | (std::uint64_t{shard} << 8U) |
                              static_cast<std::uint64_t>(kind);
  const bool is_wanted = t_thread.uncached_stacks < kMany || t_thread.uncached_stacks % kOneIn == 0;
  // Multiplied, so that another shard cannot look like another caller. Frames of Python are not on
  // the stack that the cache compares.
  const std::uint64_t context = is_wanted ? modules_.generation() ^ (which * 0xbf58476d1ce4e5b9) ^
                                                python_.hash_frames() ^
                                                (t_thread.origin.site * 0x9fb21c651e98df25)
                                          : 0;
  std::uint64_t known = 0;
  if (is_wanted && cache_.find(caller, bounds, context, modules_.closed_range(), known) &&
      sites_.count_alloc(unpack_site(known), count)) {
    t_thread.uncached_stacks = 0;
    return unpack_site(known).number;
  }
  ++t_thread.uncached_stacks;
  return walk_to_site({kind, shard}, caller, {context, bounds, is_wanted}, count);
}

ThreadOrigin SiteRecorder::count_thread_start(const Registers& caller) noexcept {
  const PythonInterpreter::State python = python_.state();
  if (python == PythonInterpreter::State::kNone || python == PythonInterpreter::State::kOff) {
    return {};
  }
  if (python_.hash_frames() == 0) {
    return t_thread.origin.file == file_ ? t_thread.origin : ThreadOrigin{};
  }
  const std::uint32_t site =
      walk_to_site({wire::SiteKind::kThreadStart, 0}, caller, {0, stack_bounds(caller.sp), false},
                   {0, wire::kBlockUnit});
  return site == HashIndex::kNone ? ThreadOrigin{} : ThreadOrigin{site + 1, file_};
}

// The node of the stack that has started this thread; 0: not known. Its site is never used for
// another stack, as it frees nothing.
std::uint32_t SiteRecorder::origin_of_thread() const noexcept {
  const ThreadOrigin& origin = t_thread.origin;
  const wire::Site* const site =
      origin.site != 0 && origin.file == file_ ? sites_.site(origin.site - 1) : nullptr;
  return site == nullptr ? 0 : site->node;
}

// The cache gets its memory only when it is worth that: a small program comes to few stacks, and a
// process with a limit of its memory needs that for itself. Where there was none, it is asked for
// again later.
void SiteRecorder::add_to_cache(const Registers& caller, const CacheKey& key,
                                const StackTrace& trace, SiteRef site) noexcept {
  constexpr std::uint32_t kWorthIt = 64;
  if (!cache_.is_enabled() &&
      uncached_.fetch_add(1, std::memory_order_relaxed) % kWorthIt == kWorthIt - 1) {
    cache_.enable();
  }
  cache_.add(caller, key.bounds, key.context, trace, pack_site(site));
}

std::uint32_t SiteRecorder::walk_to_site(SiteTable::Owner owner, const Registers& caller,
                                         const CacheKey& key, SiteCount count) noexcept {
  Scratch* const scratch = scratch_.claim();
  if (scratch == nullptr) {
    count_loss(&Losses::sites_full);
    return HashIndex::kNone;
  }
  const StackView stack = read_stack(*scratch, caller, key.bounds);
  bool is_new = false;
  const SiteRef site = sites_.count_alloc(stack, scratch->nodes, owner, count, is_new);
  if (site.number == HashIndex::kNone) {
    count_loss(&Losses::sites_full);
  } else if (key.is_wanted && !is_new) {  // not at its first time: many stacks come only once
    add_to_cache(caller, key, scratch->trace, site);
  }
  if (is_new || key.is_wanted) {
    update_header();
  }
  scratch_.give_back(*scratch);
  return site.number;
}

StackView SiteRecorder::read_stack(Scratch& scratch, const Registers& caller,
                                   StackBounds bounds) noexcept {
  StackTrace& trace = scratch.trace;
  if (libunwind_) {
    unwind_with_libunwind(caller, trace);
  } else {
    unwind(caller, bounds, trace);
  }
  modules_.recheck(trace.pc, trace.depth);
  const bool is_marked = modules_.marks(trace.pc, trace.depth, scratch.marks);
  const std::uint64_t* const marks = is_marked ? scratch.marks : nullptr;
  StackView stack = {trace.depth, trace.truncated, trace.pc, trace.hash, marks};
  if (python_.read_frames(scratch.python)) {
    stack = scratch.mixed.merge(trace, marks, scratch.python, python_);
  } else if (const std::uint32_t origin = origin_of_thread(); origin != 0) {
    stack = scratch.mixed.add_origin(trace, marks, origin);
  }
  if (stack.depth == 0) {
    count_loss(&Losses::empty_stacks);
  }
  if (stack.truncated) {
    count_loss(&Losses::truncated_stacks);
  }
  return stack;
}

void SiteRecorder::update_header() noexcept {
  wire::Header& header = *store_.header();
  header.private_bytes.store(sites_.private_bytes() + codes_.private_bytes() + cache_.bytes(),
                             std::memory_order_relaxed);
  const auto python = static_cast<std::uint32_t>(python_.state());
  if (header.python.load(std::memory_order_relaxed) != python) {
    if (python_.problem() != nullptr) {
      FixedText(header.python_problem).add(python_.problem());
    }
    header.python.store(python, std::memory_order_release);
  }
}

}  // namespace tidemark::tracer
