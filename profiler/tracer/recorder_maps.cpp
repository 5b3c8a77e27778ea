// SPDX-License-Identifier: Apache-2.0
// The recorder's part for mappings: made, cut, moved and gone.
#include "profiler/tracer/life.h"
#include "profiler/tracer/recorder.h"
#include "profiler/tracer/thread_state.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::Mode;

std::uint64_t number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

}  // namespace

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
  if (ready() && !ranges_.release(number(begin), bytes, range_gone, this)) {
    lost(losses().ranges_full);
  }
}

void Recorder::begin_remap(const void* from, std::size_t old_bytes, bool stays,
                           MovedRanges& moved) noexcept {
  const HookScope scope;
  if (!ready()) {
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
  if (!ready() || moved.file != file_) {
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
  if (!ready()) {
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
