// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/recorder.h"

#include "profiler/tracer/bounded_lock.h"
#include "profiler/tracer/draw.h"
#include "profiler/tracer/fixed_text.h"
#include "profiler/tracer/sys.h"
#include "profiler/tracer/thread_state.h"
#include "profiler/tracer/tracer_state.h"
#include "profiler/tracer/unwind/libunwind_fallback.h"
#include "profiler/tracer/unwind/unwind.h"
#include "profiler/wire/sampling.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::LiveRecord;
using wire::Mode;

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::size_t kLevelsForAll = 6;  // of the live table, when every block is recorded
constexpr std::uint64_t kNoPeriod = ~std::uint64_t{0};

// The bounds of the object that this code is linked into.
extern "C" {
[[gnu::visibility("hidden")]] extern const char __ehdr_start[];  // NOLINT: the linker's names
[[gnu::visibility("hidden")]] extern const char etext[];         // NOLINT
}

bool is_our_code(std::uint64_t pc) noexcept {
  return pc >= reinterpret_cast<std::uint64_t>(__ehdr_start) &&
         pc < reinterpret_cast<std::uint64_t>(etext);
}

std::uint64_t number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

constinit std::atomic<std::uint64_t> g_seeds = 0;

void seed(std::uint64_t& random) noexcept {
  // Differs between threads by their number: a thread mostly gets the place of one that ended.
  // Between runs and processes by time and the layout of the address space.
  const std::uint64_t turn = g_seeds.fetch_add(0x9e3779b97f4a7c15, kRelaxed);
  random = wire::mix(wire::mix(number(&t_thread) ^ sys::monotonic_ns()) + turn) | 1U;
}

}  // namespace

std::uint32_t Recorder::epoch() const noexcept {
  return store_.header()->control.epoch.load(kRelaxed);
}

// Whether this block is recorded; sets what the thread may allocate before it asks again. That is
// never more than kStride, so that a thread soon hears of another mode.
bool Recorder::picks(std::size_t bytes, std::uint8_t& period) noexcept {
  ThreadState& thread = t_thread;
  const Mode now = mode();
  if (now == Mode::kExact) {
    if (!filter_.holds_all()) {
      filter_.hold_all();
    }
    thread.ask_after(0);
    thread.period = 0;
    return period_index(0, period);
  }
  if (filter_.holds_all()) {
    leave_exact();
  }
  if (now != Mode::kSampled) {
    thread.ask_after(kStride);
    thread.period = kNoPeriod;
    return false;
  }
  const std::uint64_t every = store_.header()->control.sample_every_bytes.load(kRelaxed);
  if (thread.random == 0) {
    seed(thread.random);
  }
  std::uint64_t gap = thread.remaining + thread.beyond;
  if (gap == 0 || thread.period == kNoPeriod) {
    gap = draw_gap(thread.random, every);
    thread.period = every;
  }
  if (bytes < gap) {  // also where a recorded block is resized: it is asked for anew
    thread.ask_after(gap - bytes);
    return false;
  }
  const std::uint64_t drawn_for = thread.period;  // another period begins with the next gap
  thread.period = every;
  thread.ask_after(draw_gap(thread.random, every));
  return period_index(drawn_for, period);
}

// The blocks that were recorded while all were are still on the books.
void Recorder::leave_exact() noexcept {
  const BoundedLockGuard guard(leaving_, BoundedLockGuard::Wait::kTryOnce);
  if (!guard || !filter_.holds_all()) {
    return;
  }
  filter_.hold_only([this](auto mark) { live_.for_each_address(mark); });
}

// False: more periods were used than the file can tell apart.
bool Recorder::period_index(std::uint64_t period_bytes, std::uint8_t& index) noexcept {
  wire::Header& header = *store_.header();
  for (std::uint32_t i = 0; i < wire::kMostPeriods; ++i) {
    std::uint64_t listed = header.periods[i].load(kRelaxed);
    if (listed == 0 && i > 0 &&
        header.periods[i].compare_exchange_strong(listed, period_bytes, kRelaxed)) {
      header.period_count.fetch_add(1, kRelaxed);
      listed = period_bytes;
    }
    if (listed == period_bytes) {
      index = static_cast<std::uint8_t>(i);
      return true;
    }
  }
  lost(header.losses.sites_full);
  return false;
}

Recorder::Weight Recorder::weight_of(const LiveRecord& record) const noexcept {
  const std::uint64_t bytes = wire::unpack_size(record.size_and_period);
  const std::uint8_t index = wire::unpack_period(record.size_and_period);
  if (index == 0) {
    return {bytes, wire::kBlockUnit};
  }
  const std::uint64_t period = store_.header()->periods[index % wire::kMostPeriods].load(kRelaxed);
  const double weight = wire::sample_weight(bytes, period);
  return {static_cast<std::uint64_t>(static_cast<double>(bytes) * weight + 0.5),
          static_cast<std::uint64_t>(static_cast<double>(wire::kBlockUnit) * weight + 0.5)};
}

void Recorder::count_alloc(std::uint32_t number_of_site, Weight weight) noexcept {
  wire::Site* const site = sites_.site(number_of_site);
  if (site == nullptr) {
    return;
  }
  const std::uint64_t total = site->alloc_bytes.fetch_add(weight.bytes, kRelaxed) + weight.bytes;
  site->alloc_block_units.fetch_add(weight.block_units, kRelaxed);
  const std::uint64_t gone = site->free_bytes.load(kRelaxed);
  const std::uint64_t live = total > gone ? total - gone : 0;
  std::uint64_t peak = site->peak_live_bytes.load(kRelaxed);
  while (live > peak && !site->peak_live_bytes.compare_exchange_weak(peak, live, kRelaxed)) {
  }
}

void Recorder::count_free(std::uint32_t number_of_site, Weight weight) noexcept {
  if (wire::Site* const site = sites_.site(number_of_site); site != nullptr) {
    site->free_bytes.fetch_add(weight.bytes, kRelaxed);
    site->free_block_units.fetch_add(weight.block_units, kRelaxed);
  }
}

// Threads that run side by side mostly count in places of their own.
std::uint32_t Recorder::lane() noexcept {
  constexpr std::uint32_t kLanes = 4;
  if (t_thread.lane == 0) {
    t_thread.lane = 1 + next_lane_.fetch_add(1, kRelaxed) % kLanes;
  }
  return t_thread.lane - 1;
}

// The site of the calling stack; kNone is counted as lost here.
std::uint32_t Recorder::site_here(wire::SiteKind kind, const Registers& caller) noexcept {
  const StackBounds bounds = stack_bounds(caller.sp);
  if (mode() != Mode::kExact || libunwind_) {
    return walk_to_site(kind, 0, caller, {0, bounds, false});
  }
  // Where every block is recorded, nearly all stacks were seen before. Not so while a program
  // starts: where none is known, few are asked for.
  constexpr std::uint32_t kMany = 32;
  constexpr std::uint32_t kOneIn = 32;
  const std::uint32_t lane = this->lane();
  // Mixed: another lane must not look like another caller.
  const std::uint64_t which = (std::uint64_t{file_} << 32U) | (std::uint64_t{lane} << 8U) |
                              static_cast<std::uint64_t>(kind);
  const std::uint64_t context = modules_.generation() ^ (which * 0xbf58476d1ce4e5b9);
  const bool asks = t_thread.unknown < kMany || t_thread.unknown % kOneIn == 0;
  std::uint32_t known = 0;
  if (asks && memo_.find(caller, bounds, context, modules_.unsure(), known)) {
    t_thread.unknown = 0;
    return known;
  }
  ++t_thread.unknown;
  return walk_to_site(kind, lane, caller, {context, bounds, asks});
}

std::uint32_t Recorder::walk_to_site(wire::SiteKind kind, std::uint32_t lane,
                                     const Registers& caller, const ToKeep& keep) noexcept {
  Scratch* const scratch = scratch_.claim();
  if (scratch == nullptr) {
    lost(losses().sites_full);
    return HashIndex::kNone;
  }
  StackTrace& trace = scratch->trace;
  if (libunwind_) {
    unwind_with_libunwind(caller, trace);
  } else {
    unwind(caller, keep.bounds, trace);
  }
  if (trace.depth == 0) {
    lost(losses().empty_stacks);
  }
  if (trace.truncated) {
    lost(losses().truncated_stacks);
  }
  bool is_new = false;
  const std::uint32_t site = sites_.site_of(*scratch, kind, lane, is_new);
  if (site == HashIndex::kNone) {
    lost(losses().sites_full);
  } else if (keep.wanted && !is_new) {  // many stacks come once
    memo_.keep(caller, keep.bounds, keep.context, trace, site);
  }
  if (is_new || keep.wanted) {
    store_.header()->private_bytes.store(sites_.private_bytes() + memo_.bytes(), kRelaxed);
  }
  scratch_.give_back(*scratch);
  return site;
}

// Puts the block on the books. False: there is no room, which is counted.
bool Recorder::list(const void* block, const LiveRecord& made) noexcept {
  LiveRecord replaced = {};
  switch (live_.insert(number(block), made, replaced)) {
    case Inserted::kNoRoom:
      lost(losses().live_full);
      return false;
    case Inserted::kReplaced:
      lost(losses().missed_frees);
      count_free(replaced.site, weight_of(replaced));
      break;
    case Inserted::kNew:
      if (!filter_.holds_all()) {
        filter_.add(block);
      }
      break;
  }
  count_alloc(made.site, weight_of(made));
  return true;
}

void Recorder::record(const void* block, std::size_t bytes, const Registers& caller,
                      const TakenBlock* old) noexcept {
  std::uint8_t period = 0;
  if (without_heap_) [[unlikely]] {
    t_thread.ask_after(kStride);
    return;
  }
  if (!picks(bytes, period)) {
    return;
  }
  live_.prefetch(number(block));
  const std::uint32_t site = site_here(wire::SiteKind::kHeap, caller);
  if (site == HashIndex::kNone) {
    return;
  }
  const std::uint32_t born = old != nullptr ? old->record.epoch : epoch();
  if (list(block, {wire::pack_size(bytes, period), site, born})) {
    t_thread.last_block = number(block);
    t_thread.last_remaining = t_thread.remaining;
  }
}

// Whether the tables are there and no hook is under way in this thread. Where one seems to be,
// looks whether it is among the callers: else it was left by longjmp.
bool Recorder::may_record(HookScope& scope, const Registers& caller) noexcept {
  if (!can_record()) {
    return false;
  }
  if (scope) {
    return true;
  }
  bool inside = true;
  if (Scratch* const scratch = scratch_.claim()) {
    StackTrace& trace = scratch->trace;
    unwind(caller, stack_bounds(caller.sp), trace);
    inside = trace.depth == 0;
    for (std::uint32_t i = 0; i < trace.depth; ++i) {
      inside = inside || is_our_code(trace.pc[i]);
    }
    scratch_.give_back(*scratch);
  }
  if (inside) {
    lost(losses().reentered);
    return false;
  }
  scope.take_over();
  return true;
}

void Recorder::allocated(const void* block, std::size_t bytes, const Registers& caller) noexcept {
  HookScope scope;
  if (may_record(scope, caller)) {
    record(block, bytes, caller, nullptr);
  }
}

void Recorder::acquired(const void* block, std::size_t bytes, wire::SiteKind kind,
                        const Registers& caller) noexcept {
  HookScope scope;
  if (!may_record(scope, caller) || mode() == Mode::kDormant) {
    return;
  }
  const std::uint32_t site = site_here(kind, caller);
  if (site != HashIndex::kNone) {
    list(block, {wire::pack_size(bytes, 0), site, epoch()});
  }
}

void Recorder::gave_back(const void* block) noexcept {
  LiveRecord old = {};
  const HookScope scope;
  if (can_record() && live_.remove(number(block), old)) {
    count_free(old.site, weight_of(old));
    if (!filter_.holds_all()) {
      filter_.remove(block);
    }
  }
}

bool Recorder::open(const wire::TraceRequest& request, bool forked) noexcept {
  // Here and not by a constructor: as it is, a recorder is all zero, and takes no room in the file
  // of the library.
  modules_.bind(store_);
  live_.bind(store_);
  sites_.bind(store_, modules_);
  ranges_.bind(store_);
  if (!store_.create(request.directory, request.most_file_bytes)) {
    return false;
  }
  wire::Header& header = *store_.header();
  header.forked.store(forked ? 1 : 0, kRelaxed);
  header.period_count.store(1, kRelaxed);
  header.control.mode.store(static_cast<std::uint32_t>(request.mode), kRelaxed);
  header.control.sample_every_bytes.store(request.sample_every_bytes, kRelaxed);
  if (without_heap_) {
    FixedText(header.reason).add("the program has its own allocator: its heap is not recorded");
  } else if (without_callers_) {
    FixedText(header.reason).add("glibc is older than 2.35: call stacks have one frame only");
  }
  std::uint64_t root = 0;
  store_.take(wire::Table::kNodes, 1, root);
  const std::size_t wanted = request.mode == Mode::kExact && !forked ? kLevelsForAll : 1;
  for (std::size_t levels = 1; levels < wanted; ++levels) {
    store_.extend(wire::Table::kLive, levels);
  }
  // libunwind asks the dynamic linker, whose lock another thread of the parent may have held when
  // it forked: the child would wait for ever.
  libunwind_ = request.libunwind && !forked;
  set_stage(wire::Stage::kRecording);
  if (!store_.publish()) {
    store_.abandon(true);
    return false;
  }
  return true;
}

void Recorder::tell_mode(wire::TraceRequest& request) const noexcept {
  const Mode now = mode();
  const std::uint64_t every = store_.header()->control.sample_every_bytes.load(kRelaxed);
  if (now > Mode::kExact || (now == Mode::kSampled && every == 0)) {
    return;  // nobody knows such an order
  }
  request.mode = now;
  request.sample_every_bytes = every;
}

void Recorder::stop_system_calls() noexcept {
  const HookScope scope;
  if (can_record() && mode() != Mode::kDormant) {
    sites_.grow_ahead();
  }
  allow_probing(false);
  store_.stop_system_calls();
}

void Recorder::resume_system_calls() noexcept {
  sys::g_calls_stopped.fetch_sub(sys::kOwnFilter, kRelaxed);
  allow_probing(true);
}

void Recorder::stop_system_calls_for_child() noexcept {
  sys::g_calls_stopped.fetch_add(sys::kChildFilter, kRelaxed);
  allow_probing(false);
}

void Recorder::resume_system_calls_for_child() noexcept {
  sys::g_calls_stopped.fetch_sub(sys::kChildFilter, kRelaxed);
  allow_probing(true);
}

void Recorder::abandon(bool unmap) noexcept {
  store_.abandon(unmap);
  modules_.clear();
  sites_.clear();
  ranges_.clear();
  scratch_.clear();
  ++file_;
  leaving_.clear();
  // The filter stays: it knows blocks of the parent, which are looked for in vain once.
  t_thread.random = 0;  // children that do the same are not to draw the same
  t_thread.ask_after(0);
}

void Recorder::set_stage(wire::Stage stage) noexcept {
  store_.header()->stage.store(static_cast<std::uint32_t>(stage), std::memory_order_release);
}

bool Recorder::begin_resize(const void* block, TakenBlock& old) noexcept {
  const HookScope scope;
  if (!can_record()) {
    return false;
  }
  if (!live_.remove(number(block), old.record)) {
    if (mode() == Mode::kExact) {
      lost(losses().unknown_frees);
    }
    return false;
  }
  old.file = file_;
  if (!filter_.holds_all()) {
    filter_.remove(block);
  }
  return true;
}

void Recorder::released(const void* block) noexcept {
  const HookScope scope;
  TakenBlock old;
  if (!begin_resize(block, old)) {
    return;
  }
  const Weight weight = weight_of(old.record);
  count_free(old.record.site, weight);
  // Nothing was allocated in between: neither recorded, nor counted down.
  if (t_thread.last_block == number(block) && t_thread.last_remaining == t_thread.remaining) {
    if (wire::Site* const site = sites_.site(old.record.site); site != nullptr) {
      site->temporary_block_units.fetch_add(weight.block_units, kRelaxed);
    }
    t_thread.last_block = 0;
  }
}

void Recorder::not_resized(const void* block, const TakenBlock& old) noexcept {
  const HookScope scope;
  LiveRecord replaced = {};
  if (!can_record() || old.file != file_) {
    return;
  }
  if (live_.insert(number(block), old.record, replaced) == Inserted::kNoRoom) {
    lost(losses().live_full);
    count_free(old.record.site, weight_of(old.record));
    return;
  }
  if (!filter_.holds_all()) {
    filter_.add(block);
  }
}

void Recorder::released_by_resize(const TakenBlock& old) noexcept {
  const HookScope scope;
  if (can_record() && old.file == file_) {
    count_free(old.record.site, weight_of(old.record));
  }
}

void Recorder::resized(const void* block, std::size_t bytes, const TakenBlock* old,
                       const Registers& caller) noexcept {
  HookScope scope;
  if (!can_record()) {
    return;
  }
  if (old != nullptr && old->file != file_) {
    old = nullptr;  // the parent's
  }
  if (old != nullptr) {
    count_free(old->record.site, weight_of(old->record));
  }
  if (may_record(scope, caller)) {
    record(block, bytes, caller, old);
  }
}

void Recorder::range_gone(void* recorder, const RangePiece& piece) noexcept {
  static_cast<Recorder*>(recorder)->count_free(piece.site,
                                               {piece.bytes, piece.last ? wire::kBlockUnit : 0});
}

void Recorder::mapped(const void* begin, std::size_t bytes, wire::SiteKind kind,
                      const Registers& caller) noexcept {
  HookScope scope;
  if (!may_record(scope, caller)) {
    return;
  }
  if (mode() == Mode::kDormant) {  // MAP_FIXED may have replaced what was recorded before
    ranges_.release(number(begin), bytes, range_gone, this);
    return;
  }
  const std::uint32_t site = site_here(kind, caller);
  if (site == HashIndex::kNone) {
    return;
  }
  if (!ranges_.insert(number(begin), bytes, site, epoch(), range_gone, this)) {
    lost(losses().ranges_full);
    return;
  }
  count_alloc(site, {bytes, wire::kBlockUnit});
}

void Recorder::unmapped(const void* begin, std::size_t bytes) noexcept {
  const HookScope scope;
  if (can_record() && !ranges_.release(number(begin), bytes, range_gone, this)) {
    lost(losses().ranges_full);
  }
}

void Recorder::begin_remap(const void* from, std::size_t old_bytes, bool stays,
                           MovedRanges& moved) noexcept {
  const HookScope scope;
  if (!can_record()) {
    return;
  }
  moved.file = file_;
  moved.stay = stays;
  if (stays) {
    moved.count = ranges_.find(number(from), moved.piece[0]) ? 1 : 0;
    return;
  }
  struct Taking {
    Recorder& recorder;
    MovedRanges& moved;
  } taking = {*this, moved};
  const auto take = [](void* context, const RangePiece& piece) {
    const auto& [recorder, all] = *static_cast<Taking*>(context);
    if (all.count < MovedRanges::kMost) {
      all.piece[all.count++] = piece;
    } else {
      recorder.lost(recorder.losses().ranges_full);
      range_gone(&recorder, piece);
    }
  };
  if (!ranges_.release(number(from), old_bytes, take, &taking)) {
    lost(losses().ranges_full);
  }
}

void Recorder::not_remapped(const MovedRanges& moved) noexcept {
  const HookScope scope;
  if (!can_record() || moved.file != file_) {
    return;
  }
  for (std::size_t i = 0; i < moved.count && !moved.stay; ++i) {
    if (!ranges_.put_back(moved.piece[i])) {
      lost(losses().ranges_full);
      range_gone(this, moved.piece[i]);
    }
  }
}

void Recorder::remapped(const MovedRanges& moved, const void* to, std::size_t bytes,
                        const Registers& caller) noexcept {
  HookScope scope;
  if (!can_record()) {
    return;
  }
  const bool is_known = moved.count > 0 && moved.file == file_;  // else a file, or from before us
  for (std::size_t i = 0; i < moved.count && is_known && !moved.stay; ++i) {
    range_gone(this, moved.piece[i]);
  }
  const RangePiece& first = moved.piece[0];
  const wire::Site* const old = is_known ? sites_.site(first.site) : nullptr;
  if (old == nullptr || mode() == Mode::kDormant || !may_record(scope, caller)) {
    ranges_.release(number(to), bytes, range_gone, this);
    return;
  }
  const std::uint32_t site = site_here(old->kind, caller);
  if (site == HashIndex::kNone) {
    return;
  }
  if (!ranges_.insert(number(to), bytes, site, first.epoch, range_gone, this)) {
    lost(losses().ranges_full);
    return;
  }
  count_alloc(site, {bytes, wire::kBlockUnit});
}

}  // namespace tidemark::tracer
