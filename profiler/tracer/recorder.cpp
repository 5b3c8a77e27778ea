// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/recorder.h"

#include "profiler/tracer/fixed_text.h"
#include "profiler/tracer/sys.h"
#include "profiler/tracer/unwind/stack_bounds.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::LiveRecord;
using wire::Losses;
using wire::Mode;

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::size_t kLevelsForExact = 6;  // of the live table, from the start

std::uint64_t number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

}  // namespace

bool Recorder::open(const wire::TraceRequest& request, bool forked) noexcept {
  // libunwind asks the dynamic linker, whose lock another thread of the parent may have held when
  // it forked: the child would wait without end.
  sites_.bind(request.libunwind && !forked);
  live_.bind(store());
  maps_.bind(sites_);
  if (!store().create(request.directory, request.most_file_bytes)) {
    return false;
  }
  wire::Header& header = *store().header();
  header.forked.store(forked ? 1 : 0, kRelaxed);
  header.period_count.store(1, kRelaxed);
  header.control.mode.store(static_cast<std::uint32_t>(request.mode), kRelaxed);
  header.control.sample_every_bytes.store(request.sample_every_bytes, kRelaxed);
  if (reason_ != nullptr) {
    FixedText(header.reason).add(reason_);
  }
  std::uint64_t root = 0;
  store().take(wire::Table::kNodes, 1, root);
  const std::size_t wanted = request.mode == Mode::kExact && !forked ? kLevelsForExact : 1;
  for (std::size_t levels = 1; levels < wanted; ++levels) {
    store().make_room(wire::Table::kLive, items_in(wire::Table::kLive, levels));
  }
  header.stage.store(static_cast<std::uint32_t>(wire::Stage::kRecording),
                     std::memory_order_release);
  if (!store().publish()) {
    store().abandon(true);
    return false;
  }
  return true;
}

void Recorder::abandon(bool unmap) noexcept {
  sites_.abandon(unmap);
  maps_.clear();
  leave_exact_lock_.clear();
  // The filter stays: blocks of the parent that it holds cost one failed lookup each.
  t_thread.random = 0;  // children that do the same are not to draw the same samples
  t_thread.set_gap(0);
}

void Recorder::copy_mode_to(wire::TraceRequest& request) const noexcept {
  const Mode now = sites_.mode();
  const std::uint64_t every = sites_.store().header()->control.sample_every_bytes.load(kRelaxed);
  if (now > Mode::kExact || (now == Mode::kSampled && every == 0)) {
    return;  // the file is damaged
  }
  request.mode = now;
  request.sample_every_bytes = every;
}

void Recorder::stop_system_calls() noexcept {
  const HookScope scope;
  if (can_record() && sites_.mode() != Mode::kDormant) {
    sites_.grow_ahead();
    maps_.grow_ahead();
  }
  allow_probing(false);
  store().stop_system_calls();
}

void Recorder::resume_system_calls() noexcept {
  sys::g_calls_stopped.fetch_sub(sys::kOwnFilter, kRelaxed);
  allow_probing(true);
}

void stop_system_calls_for_child() noexcept {
  sys::g_calls_stopped.fetch_add(sys::kChildFilter, kRelaxed);
  allow_probing(false);
}

void resume_system_calls_for_child() noexcept {
  sys::g_calls_stopped.fetch_sub(sys::kChildFilter, kRelaxed);
  allow_probing(true);
}

// Whether this block is recorded; sets the countdown of the thread. That is bounded, so that a
// thread soon notices another mode.
bool Recorder::is_picked(std::size_t bytes, std::uint8_t& period) noexcept {
  const Mode now = sites_.mode();
  if (now == Mode::kExact) {
    if (!filter_.holds_all()) {
      filter_.hold_all();
    }
    t_thread.set_gap(0);
    t_thread.period = 0;
    period = 0;
    return true;
  }
  if (filter_.holds_all()) {
    leave_exact();
  }
  if (now == Mode::kSampled) {
    return sample_block(*store().header(), bytes, period);
  }
  t_thread.set_gap(kMaxCountdownBytes);
  t_thread.period = kNoPeriod;
  return false;
}

// The filter must go on holding the blocks that were recorded in exact mode and still live.
void Recorder::leave_exact() noexcept {
  const BoundedLockGuard guard(leave_exact_lock_, BoundedLockGuard::Wait::kTryOnce);
  if (!guard || !filter_.holds_all()) {
    return;
  }
  filter_.hold_only([this](auto visit) { live_.for_each_address(visit); });
}

// A block that was counted on its site. False: there is no room, which is counted.
bool Recorder::insert(const void* block, const LiveRecord& record) noexcept {
  LiveRecord replaced = {};
  switch (live_.insert(number(block), record, replaced)) {
    case Inserted::kNoRoom:
      sites_.count_loss(&Losses::live_full);
      sites_.undo_alloc(record.site, count_of(record));
      return false;
    case Inserted::kReplaced:
      sites_.count_loss(&Losses::missed_frees);
      sites_.count_free(replaced.site, count_of(replaced));
      break;
    case Inserted::kNew:
      if (!filter_.holds_all()) {
        filter_.add(block);
      }
      break;
  }
  return true;
}

void Recorder::record_block(const void* block, std::size_t bytes, const Registers& caller,
                            const TakenBlock* old) noexcept {
  std::uint8_t period = 0;
  if (without_heap_) [[unlikely]] {
    t_thread.set_gap(kMaxCountdownBytes);
    return;
  }
  if (!is_picked(bytes, period)) {
    return;
  }
  live_.prefetch(number(block));
  LiveRecord record = {wire::pack_size(bytes, period), 0,
                       old != nullptr ? old->record.epoch : sites_.epoch()};
  record.site = sites_.count_alloc(wire::SiteKind::kHeap, caller, count_of(record));
  if (record.site != HashIndex::kNone && insert(block, record)) {
    t_thread.last_block = number(block);
    t_thread.last_remaining = t_thread.remaining;
  }
}

void Recorder::record_alloc(const void* block, std::size_t bytes,
                            const Registers& caller) noexcept {
  HookScope scope;
  if (sites_.may_record(scope, caller)) {
    record_block(block, bytes, caller, nullptr);
  }
}

void Recorder::record_free(const void* block) noexcept {
  const HookScope scope;
  TakenBlock old;
  if (!begin_realloc(block, old)) {
    return;
  }
  // The thread has allocated nothing in between: neither recorded, nor counted down.
  const bool is_temporary =
      t_thread.last_block == number(block) && t_thread.last_remaining == t_thread.remaining;
  if (is_temporary) {
    t_thread.last_block = 0;
  }
  sites_.count_free(old.record.site, count_of(old.record), is_temporary);
}

bool Recorder::begin_realloc(const void* block, TakenBlock& old) noexcept {
  const HookScope scope;
  if (!can_record()) {
    return false;
  }
  if (!live_.remove(number(block), old.record)) {
    if (sites_.mode() == Mode::kExact) {
      sites_.count_loss(&Losses::unknown_frees);
    }
    return false;
  }
  old.file = sites_.file();
  if (!filter_.holds_all()) {
    filter_.remove(block);
  }
  return true;
}

void Recorder::undo_realloc(const void* block, const TakenBlock& old) noexcept {
  const HookScope scope;
  LiveRecord replaced = {};
  if (!can_record() || old.file != sites_.file()) {
    return;
  }
  if (live_.insert(number(block), old.record, replaced) == Inserted::kNoRoom) {
    sites_.count_loss(&Losses::live_full);
    sites_.count_free(old.record.site, count_of(old.record));
    return;
  }
  if (!filter_.holds_all()) {
    filter_.add(block);
  }
}

void Recorder::record_free_by_realloc(const TakenBlock& old) noexcept {
  const HookScope scope;
  if (can_record() && old.file == sites_.file()) {
    sites_.count_free(old.record.site, count_of(old.record));
  }
}

void Recorder::finish_realloc(const void* block, std::size_t bytes, const TakenBlock* old,
                              const Registers& caller) noexcept {
  HookScope scope;
  if (!can_record()) {
    return;
  }
  if (old != nullptr && old->file != sites_.file()) {
    old = nullptr;  // the parent's
  }
  if (old != nullptr) {
    sites_.count_free(old->record.site, count_of(old->record));
  }
  if (sites_.may_record(scope, caller)) {
    record_block(block, bytes, caller, old);
  }
}

void Recorder::record_cuda_alloc(const void* block, std::size_t bytes, wire::SiteKind kind,
                                 const Registers& caller) noexcept {
  HookScope scope;
  if (!sites_.may_record(scope, caller) || sites_.mode() == Mode::kDormant) {
    return;
  }
  LiveRecord record = {wire::pack_size(bytes, 0), 0, sites_.epoch()};
  record.site = sites_.count_alloc(kind, caller, count_of(record));
  if (record.site != HashIndex::kNone) {
    insert(block, record);
  }
}

void Recorder::record_cuda_free(const void* block) noexcept {
  LiveRecord old = {};
  const HookScope scope;
  if (can_record() && live_.remove(number(block), old)) {
    sites_.count_free(old.site, count_of(old));
    if (!filter_.holds_all()) {
      filter_.remove(block);
    }
  }
}

ThreadOrigin Recorder::record_thread_start(const Registers& caller) noexcept {
  HookScope scope;
  if (!sites_.may_record(scope, caller) || sites_.mode() == Mode::kDormant) {
    return {};
  }
  return sites_.count_thread_start(caller);
}

}  // namespace tidemark::tracer
