// SPDX-License-Identifier: Apache-2.0
#include "profiler/reader/traced_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "common/clock.h"
#include "profiler/reader/trace_image.h"

namespace tidemark::reader {
namespace {

std::uint64_t whole(double value) {
  return value > 0.0 ? static_cast<std::uint64_t>(std::llround(std::min(value, 0x1p62))) : 0;
}

bool is_host_memory(AllocationKind kind) {
  return !is_counted_elsewhere(kind) && kind != AllocationKind::kCudaDevice;
}

// What the tracer does not record, or why it lost records; "" when all is well.
std::string problem_of(const TraceSnapshot& last, std::uint64_t dropped_records) {
  if (!last.reason.empty()) {
    return last.reason;
  }
  return dropped_records > 0 && last.extend_errno != 0
             ? system_error("its file could not grow", last.extend_errno).what
             : "";
}

bool is_same(const SiteSample& a, const SiteSample& b) {
  return a.live_bytes == b.live_bytes && a.live_blocks == b.live_blocks &&
         a.alloc_bytes == b.alloc_bytes && a.resident_bytes == b.resident_bytes;
}

}  // namespace

Status TracedFile::read() {
  TIDEMARK_TRY_ASSIGN(last_,
                      file_.snapshot([this](std::uint32_t site) { return is_followed(site); }));
  merge_sites();
  for (SiteCounts& site : last_.sites) {
    std::uint64_t& most = state(site).most_live_bytes;
    most = std::max(most, site.live_bytes());
    site.peak_live_bytes = std::max(site.peak_live_bytes, most);
  }
  if (!has_been_read_) {
    for (const SiteCounts& site : last_.sites) {
      state(site).first_live_bytes = site.live_bytes();
    }
    has_been_read_ = true;
  }
  return ok();
}

void TracedFile::merge_sites() {
  if (last_.sites.empty()) {
    return;
  }
  places_.resize(std::max(places_.size(), last_.sites.back().index + std::size_t{1}), kNoPlace);
  std::vector<std::uint32_t> in_merged(states_.size(), kNoPlace);  // by place of the state
  std::size_t merged = 0;  // those at the front of last_.sites
  for (const SiteCounts& site : last_.sites) {
    const std::uint32_t place = place_of(site);
    in_merged.resize(states_.size(), kNoPlace);
    if (in_merged[place] == kNoPlace) {
      in_merged[place] = static_cast<std::uint32_t>(merged);
      SiteCounts& first = last_.sites[merged++];
      first = site;
      first.index = states_[place].leader;
    } else {
      SiteCounts& into = last_.sites[in_merged[place]];
      into.alloc_bytes += site.alloc_bytes;
      into.free_bytes += site.free_bytes;
      // They were not at one time.
      into.peak_live_bytes = std::max(into.peak_live_bytes, site.peak_live_bytes);
      into.alloc_blocks += site.alloc_blocks;
      into.free_blocks += site.free_blocks;
      into.temporary_blocks += site.temporary_blocks;
      into.truncated = into.truncated || site.truncated;
    }
  }
  last_.sites.resize(merged);
}

// An honest file does not change the stack of a site: it is looked for once.
std::uint32_t TracedFile::place_of(const SiteCounts& site) {
  std::uint32_t& place = places_[site.index];
  if (place == kNoPlace) {
    const std::uint64_t stack_and_kind =
        site.stack ^ wire::mix(static_cast<std::uint64_t>(site.kind));
    const auto next = static_cast<std::uint32_t>(states_.size());
    const auto [it, is_new] = by_stack_.try_emplace(stack_and_kind, next);
    place = it->second;
    if (is_new) {
      states_.emplace_back().leader = site.index;
    }
  }
  return place;
}

void TracedFile::set_epoch(std::int64_t now_ns, std::optional<std::uint32_t> step) {
  const std::int64_t age_ns = now_ns - static_cast<std::int64_t>(std::min<std::uint64_t>(
                                           file_.identity().created_ns, INT64_MAX));
  const auto seconds = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(age_ns / kNsPerSecond, 0, wire::kEpochIsStep - 1));
  const std::uint32_t epoch =
      step ? wire::kEpochIsStep | std::min(*step, wire::kEpochIsStep - 1) : seconds;
  if (epoch_ == epoch) {
    return;
  }
  // A file that cannot be written keeps its last epoch: ages are then coarser, nothing else.
  const Status set = step ? file_.set_epoch_step(std::min(*step, wire::kEpochIsStep - 1))
                          : file_.set_epoch_seconds(seconds);
  static_cast<void>(set);
  epoch_ = epoch;
}

std::uint64_t TracedFile::grown_bytes(const SiteCounts& site) {
  const std::uint64_t first = state(site).first_live_bytes;
  return site.live_bytes() > first ? site.live_bytes() - first : 0;
}

SiteSample TracedFile::sample_of(const SiteCounts& site, const SiteState& state) const {
  SiteSample sample;
  sample.site = state.number;
  sample.live_bytes = site.live_bytes();
  sample.live_blocks = whole(site.live_blocks());
  sample.alloc_bytes = site.alloc_bytes;
  sample.alloc_blocks = whole(site.alloc_blocks);
  sample.peak_bytes = site.peak_live_bytes;
  sample.temporary_blocks = whole(site.temporary_blocks);
  const auto share = std::find_if(resident_.begin(), resident_.end(),
                                  [&](const auto& known) { return known.first == site.index; });
  if (share != resident_.end()) {
    sample.resident_bytes = whole(share->second * static_cast<double>(sample.live_bytes));
  }
  return sample;
}

void TracedFile::add_samples(AllocationFacts& facts) {
  for (const SiteCounts& site : last_.sites) {
    SiteState& state = this->state(site);
    if (state.number == 0) {
      continue;
    }
    SiteSample sample = sample_of(site, state);
    const auto [told, is_new] = told_.try_emplace(state.number, sample);
    if (is_new || !is_same(sample, told->second)) {
      told->second = sample;
      facts.samples.push_back(sample);
    }
  }
}

TraceSample TracedFile::summary(double t_s) {
  TraceSample sum;
  sum.key = key_;
  sum.t_s = t_s;
  sum.mode = last_.mode;
  if (last_.mode == TraceMode::kSampled) {
    sum.sample_every_bytes = last_.sample_every_bytes;
  }
  sum.sites = last_.ready_sites;
  double live_blocks = 0.0;
  double rest_blocks = 0.0;
  for (const SiteCounts& site : last_.sites) {
    if (!is_host_memory(site.kind)) {
      continue;
    }
    sum.live_bytes += site.live_bytes();
    live_blocks += site.live_blocks();
    if (state(site).number == 0) {
      sum.rest_bytes += site.live_bytes();
      rest_blocks += site.live_blocks();
    }
  }
  sum.live_blocks = whole(live_blocks);
  sum.rest_blocks = whole(rest_blocks);
  sum.freed_blocks = whole(last_.freed_blocks);
  const TraceLosses& losses = last_.losses;
  sum.unknown_frees = losses.unknown_frees + losses.missed_frees;
  sum.dropped_records = losses.live_full + losses.sites_full + losses.ranges_full;
  sum.truncated_stacks = losses.truncated_stacks;
  sum.empty_stacks = losses.empty_stacks;
  sum.file_bytes = last_.file_bytes;
  sum.private_bytes = last_.private_bytes;
  sum.problem = problem_of(last_, sum.dropped_records);
  return sum;
}

void TracedFile::add_ages(const LiveScan& scan, double created_s, AllocationFacts& facts) {
  const std::size_t buckets = std::min(scan.ages.size(), kMostAgeBuckets);
  std::map<std::uint32_t, SiteAges> by_number;
  for (const LiveSite& site : scan.sites) {
    const SiteState* const state = state_of(site.site);
    if (state == nullptr || state->number == 0) {
      continue;
    }
    SiteAges& ages = by_number[state->number];
    ages.site = state->number;
    ages.intervals.resize(buckets);
    for (std::size_t i = 0; i < buckets; ++i) {
      const AgeBucket& age = scan.ages[i];
      ages.intervals[i].in_steps = age.is_step;
      ages.intervals[i].from = age.is_step ? age.first : age.first + created_s;
      ages.intervals[i].bytes += whole(site.bytes_by_age[i]);
    }
  }
  for (auto& [number, ages] : by_number) {
    facts.ages.push_back(std::move(ages));
  }
}

void TracedFile::set_resident_share(std::uint32_t site, double share) {
  const auto known = std::find_if(resident_.begin(), resident_.end(),
                                  [&](const auto& each) { return each.first == site; });
  if (known != resident_.end()) {
    known->second = share;
  } else {
    resident_.emplace_back(site, share);
  }
}

}  // namespace tidemark::reader
