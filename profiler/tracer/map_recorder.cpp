// SPDX-License-Identifier: Apache-2.0
#include "profiler/tracer/map_recorder.h"

#include "profiler/tracer/poison.h"

namespace tidemark::tracer {
namespace {

using wire::Losses;
using wire::Mode;

std::uint64_t number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

}  // namespace

void MapRecorder::bind(SiteRecorder& sites) noexcept {
  sites_ = &sites;
  ranges_.bind(sites.store());
}

void MapRecorder::count_released(void* recorder, const RangePiece& piece) noexcept {
  static_cast<MapRecorder*>(recorder)->sites_->count_free(
      piece.site, {piece.bytes, piece.last ? wire::kBlockUnit : 0});
}

void MapRecorder::insert(const void* begin, std::size_t bytes, wire::SiteKind kind,
                         std::uint32_t epoch, const Registers& caller) noexcept {
  const SiteCount count = {bytes, wire::kBlockUnit};
  const std::uint32_t site = sites_->count_alloc(kind, caller, count);
  if (site == HashIndex::kNone) {
    return;
  }
  if (!ranges_.insert(number(begin), bytes, site, epoch, count_released, this)) {
    sites_->count_loss(&Losses::ranges_full);
    sites_->undo_alloc(site, count);
  }
}

void MapRecorder::record_map(const void* begin, std::size_t bytes, wire::SiteKind kind,
                             const Registers& caller) noexcept {
  HookScope scope;
  if (!sites_->may_record(scope, caller)) {
    return;
  }
  if (sites_->mode() == Mode::kDormant) {  // MAP_FIXED may have replaced what was recorded before
    ranges_.release(number(begin), bytes, count_released, this);
    return;
  }
  insert(begin, bytes, kind, sites_->epoch(), caller);
}

void MapRecorder::record_unmap(const void* begin, std::size_t bytes) noexcept {
  const HookScope scope;
  if (can_record() && !ranges_.release(number(begin), bytes, count_released, this)) {
    sites_->count_loss(&Losses::ranges_full);
  }
}

void MapRecorder::begin_remap(const void* from, std::size_t old_bytes, bool stays,
                              MovedRanges& moved) noexcept {
  const HookScope scope;
  if (!can_record()) {
    return;
  }
  moved.file = sites_->file();
  moved.stay = stays;
  if (stays) {
    moved.count = ranges_.find(number(from), moved.piece[0]) ? 1 : 0;
    return;
  }
  struct Context {
    MapRecorder& recorder;
    MovedRanges& moved;
  } context = {*this, moved};
  const auto take = [](void* given, const RangePiece& piece) {
    const auto& [recorder, all] = *static_cast<Context*>(given);
    if (all.count < MovedRanges::kMaxPieces) {
      all.piece[all.count++] = piece;
    } else {
      recorder.sites_->count_loss(&Losses::ranges_full);
      count_released(&recorder, piece);
    }
  };
  if (!ranges_.release(number(from), old_bytes, take, &context)) {
    sites_->count_loss(&Losses::ranges_full);
  }
}

void MapRecorder::undo_remap(const MovedRanges& moved) noexcept {
  const HookScope scope;
  if (!can_record() || moved.file != sites_->file()) {
    return;
  }
  for (std::size_t i = 0; i < moved.count && !moved.stay; ++i) {
    if (!ranges_.put_back(moved.piece[i])) {
      sites_->count_loss(&Losses::ranges_full);
      count_released(this, moved.piece[i]);
    }
  }
}

void MapRecorder::finish_remap(const MovedRanges& moved, const void* to, std::size_t bytes,
                               const Registers& caller) noexcept {
  HookScope scope;
  if (!can_record()) {
    return;
  }
  // Else it was a file, or mapped before the tracer was on.
  const bool is_known = moved.count > 0 && moved.file == sites_->file();
  for (std::size_t i = 0; i < moved.count && is_known && !moved.stay; ++i) {
    count_released(this, moved.piece[i]);
  }
  const RangePiece& first = moved.piece[0];
  const wire::Site* const old = is_known ? sites_->site(first.site) : nullptr;
  if (old == nullptr || sites_->mode() == Mode::kDormant || !sites_->may_record(scope, caller)) {
    ranges_.release(number(to), bytes, count_released, this);
    return;
  }
  insert(to, bytes, old->kind, first.epoch, caller);
}

}  // namespace tidemark::tracer
