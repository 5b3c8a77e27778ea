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
  if (last.python == wire::PythonFramesState::kOff) {
    return "call stacks have no lines of Python: " + last.python_problem;
  }
  return dropped_records > 0 && last.extend_errno != 0
             ? system_error("its file could not grow", last.extend_errno).what
             : "";
}

// Of what all processes hold, a site of the heap is listed from this part on: a quarter of the
// least that the collector follows, because a stack may have four sites (see wire::Site).
constexpr std::uint64_t kLeastPart = 80'000;
constexpr std::size_t kMostOldStates = 1U << 13U;

bool is_same(const SiteSample& a, const SiteSample& b) {
  return a.live_bytes == b.live_bytes && a.live_blocks == b.live_blocks &&
         a.alloc_bytes == b.alloc_bytes && a.resident_bytes == b.resident_bytes;
}

}  // namespace

// Adds up those that are not.
bool TracedFile::is_worth_listing(const SiteCounts& site, bool is_followed) {
  const std::uint64_t live_bytes = site.live_bytes();
  if (site.kind != AllocationKind::kHeap) {
    return live_bytes > 0 || is_followed;
  }
  live_bytes_ += live_bytes;
  if ((live_bytes > 0 && live_bytes >= least_bytes_) || is_followed) {
    return true;
  }
  unlisted_bytes_ += live_bytes;
  unlisted_blocks_ += site.live_blocks();
  return false;
}

Status TracedFile::read(std::uint64_t run_live_bytes) {
  if (reads_ == 0) {  // to know what is little
    const auto add_up = [this](const SiteCounts& site) {
      live_bytes_ += site.kind == AllocationKind::kHeap ? site.live_bytes() : 0;
      return false;
    };
    TIDEMARK_TRY(file_.snapshot(add_up));
  }
  least_bytes_ = std::max(live_bytes_, run_live_bytes) / kLeastPart;
  live_bytes_ = 0;
  unlisted_bytes_ = 0;
  unlisted_blocks_ = 0.0;
  // There are many more sites than places: not looked for one by one.
  std::vector<bool> followed(places_.empty() ? 0 : places_.back().site + std::size_t{1});
  for (const Place& place : places_) {
    followed[place.site] = states_[place.state].number != 0;
  }
  TIDEMARK_TRY_ASSIGN(last_, file_.snapshot([&](const SiteCounts& site) {
    return is_worth_listing(site, site.index < followed.size() && followed[site.index]);
  }));
  forget_old_states();
  merge_sites();
  for (SiteCounts& site : last_.sites) {
    SiteState& state = this->state(site);
    std::uint64_t& most = state.most_live_bytes;
    state.is_highest_yet = site.live_bytes() > most;
    most = std::max(most, site.live_bytes());
    site.peak_live_bytes = std::max(site.peak_live_bytes, most);
  }
  if (reads_ == 0) {
    for (const SiteCounts& site : last_.sites) {
      state(site).first_live_bytes = site.live_bytes();
    }
  }
  ++reads_;
  return ok();
}

std::uint64_t TracedFile::live_bytes() const {
  std::uint64_t sum = unlisted_bytes_;
  for (const SiteCounts& site : last_.sites) {
    sum += site.live_bytes();
  }
  return sum;
}

// Stacks that come and go would else add up.
void TracedFile::forget_old_states() {
  if (states_.size() < 2 * last_.sites.size() + kMostOldStates) {
    return;
  }
  std::vector<bool> is_current(states_.size());
  for (const Place& place : places_) {
    is_current[place.state] = true;
  }
  std::vector<SiteState> kept;
  for (auto entry = by_stack_.begin(); entry != by_stack_.end();) {
    const std::uint32_t place = entry->second;
    if (!is_current[place] && states_[place].number == 0) {
      entry = by_stack_.erase(entry);
      continue;
    }
    entry->second = static_cast<std::uint32_t>(kept.size());
    kept.push_back(states_[place]);
    ++entry;
  }
  states_ = std::move(kept);
}

void TracedFile::merge_sites() {
  places_.clear();
  places_.reserve(last_.sites.size());
  std::vector<std::uint32_t> in_merged(states_.size(), kNoPlace);  // by place of the state
  std::size_t merged = 0;  // those at the front of last_.sites
  for (const SiteCounts& site : last_.sites) {
    const std::uint32_t place = add_place(site);
    in_merged.resize(states_.size(), kNoPlace);
    if (in_merged[place] == kNoPlace) {
      in_merged[place] = static_cast<std::uint32_t>(merged);
      last_.sites[merged++] = site;
      states_[place].leader = site.index;
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
  last_.sites.shrink_to_fit();
}

std::uint32_t TracedFile::find_place(std::uint32_t site) const {
  const auto found =
      std::lower_bound(places_.begin(), places_.end(), site,
                       [](const Place& place, std::uint32_t index) { return place.site < index; });
  return found != places_.end() && found->site == site ? found->state : kNoPlace;
}

std::uint32_t TracedFile::add_place(const SiteCounts& site) {
  const std::uint64_t stack_and_kind =
      site.stack ^ wire::mix(static_cast<std::uint64_t>(site.kind));
  const auto next = static_cast<std::uint32_t>(states_.size());
  const auto [it, is_new] = by_stack_.try_emplace(stack_and_kind, next);
  if (is_new) {
    states_.emplace_back().kind = site.kind;
  }
  places_.push_back({site.index, it->second});
  return it->second;
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
  const SiteState& state = this->state(site);
  const std::uint64_t first = state.first_live_bytes;
  return state.is_highest_yet && site.live_bytes() > first ? site.live_bytes() - first : 0;
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
  if (const auto share = resident_.find(state.number); share != resident_.end()) {
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
    const auto [it, is_new] = told_.try_emplace(state.number, Told{sample});
    SiteSample& told = it->second.sample;
    it->second.reads = reads_;
    // Where a site was recycled and its stack came again, the tracer counts from 0.
    sample.alloc_bytes = std::max(sample.alloc_bytes, told.alloc_bytes);
    sample.alloc_blocks = std::max(sample.alloc_blocks, told.alloc_blocks);
    sample.peak_bytes = std::max(sample.peak_bytes, told.peak_bytes);
    sample.temporary_blocks = std::max(sample.temporary_blocks, told.temporary_blocks);
    if (is_new || !is_same(sample, told)) {
      told = sample;
      facts.samples.push_back(sample);
    }
  }
  for (auto& [number, told] : told_) {
    if (told.reads != reads_ && told.sample.live_bytes > 0) {  // it was recycled: all is freed
      told.sample.live_bytes = 0;
      told.sample.live_blocks = 0;
      told.sample.resident_bytes = std::nullopt;
      facts.samples.push_back(told.sample);
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
  sum.live_bytes = unlisted_bytes_;
  sum.rest_bytes = unlisted_bytes_;
  double live_blocks = unlisted_blocks_;
  double rest_blocks = unlisted_blocks_;
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

}  // namespace tidemark::reader
