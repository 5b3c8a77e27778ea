// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/result.h"
#include "common/site_records.h"
#include "profiler/reader/trace_file.h"

namespace tidemark::reader {

// One trace file under the collector's eye: what it said last, which of its sites are followed, and
// what has changed since. Sites of the heap that hold next to nothing are only added up. A site
// that is followed may become that of another stack once it has freed all; if its stack comes
// again, in whatever site, it is followed on. Not thread-safe.
class TracedFile {
 public:
  struct SiteState {
    std::uint32_t leader = 0;  // the site that last() has of this stack and kind
    std::uint32_t number = 0;  // in the run; 0: not followed
    AllocationKind kind = AllocationKind::kHeap;
    std::uint64_t first_live_bytes = 0;
    std::uint64_t most_live_bytes = 0;  // at any look
    bool is_highest_yet = false;        // more than at all looks before the last one
  };

  TracedFile(std::string name, ProcessKey key, TraceFile file)
      : name_(std::move(name)), key_(key), file_(std::move(file)) {}

  const std::string& name() const { return name_; }
  const ProcessKey& key() const { return key_; }
  TraceFile& file() { return file_; }
  const TraceSnapshot& last() const { return last_; }
  // Stacks that it remembers something of. Bounded by those that are listed or followed.
  std::size_t known_stacks() const { return states_.size(); }
  // Of all sites, those that last() does not list too.
  std::uint64_t live_bytes() const;

  // Reads the counters. After an error last() is what it was. `run_live_bytes`: what all processes
  // of the run hold, if that is known.
  Status read(std::uint64_t run_live_bytes = 0);
  // Seconds since the file was created, or a step; written only when it changes.
  void set_epoch(std::int64_t now_ns, std::optional<std::uint32_t> step);

  // Of a site of last().
  SiteState& state(const SiteCounts& site) { return states_[find_place(site.index)]; }
  // The site that stands for all with the same stack and kind: the one that last() has.
  std::uint32_t leader_of(std::uint32_t site) const {
    const SiteState* const state = state_of(site);
    return state == nullptr ? site : state->leader;
  }
  // Those that last() does not list are of the heap.
  AllocationKind kind_of(std::uint32_t site) const {
    const SiteState* const state = state_of(site);
    return state == nullptr ? AllocationKind::kHeap : state->kind;
  }
  bool is_followed(std::uint32_t site) const {
    const SiteState* const state = state_of(site);
    return state != nullptr && state->number != 0;
  }
  // Whether its stack has been named.
  bool is_named(const SiteState& state) const { return named_.contains(state.number); }
  void set_named(const SiteState& state) { named_.insert(state.number); }
  // Live bytes above those that were there at the first look.
  std::uint64_t grown_bytes(const SiteCounts& site);

  // Samples of followed sites that are not as they were told last. `resident_share` of a site is
  // kept until the next scan.
  void add_samples(AllocationFacts& facts);
  // The process as a whole.
  TraceSample summary(double t_s);

  // Ages and residency, from a scan of the live blocks.
  void add_ages(const LiveScan& scan, double created_s, AllocationFacts& facts);
  void set_resident_share(const SiteCounts& site, double share) {
    resident_[state(site).number] = share;
  }

 private:
  static constexpr std::uint32_t kNoPlace = UINT32_MAX;

  struct Told {
    SiteSample sample;
    std::uint64_t reads = 0;  // when it was last seen
  };

  bool is_worth_listing(const SiteCounts& site, bool is_followed);
  void merge_sites();
  void forget_old_states();
  // nullptr: the site is not known.
  const SiteState* state_of(std::uint32_t site) const {
    const std::uint32_t place = find_place(site);
    return place == kNoPlace ? nullptr : &states_[place];
  }
  std::uint32_t find_place(std::uint32_t site) const;
  std::uint32_t add_place(const SiteCounts& site);
  SiteSample sample_of(const SiteCounts& site, const SiteState& state) const;

  std::string name_;
  ProcessKey key_;
  TraceFile file_;
  TraceSnapshot last_;
  std::uint64_t reads_ = 0;
  std::uint64_t live_bytes_ = 0;      // of the sites of the heap, in last() or not
  std::uint64_t unlisted_bytes_ = 0;  // of those that are not in it
  double unlisted_blocks_ = 0.0;
  std::uint64_t least_bytes_ = 0;  // a site that holds less is not listed
  std::optional<std::uint32_t> epoch_;
  // Several sites may have one stack; they have one state. Where it is, of the sites that the last
  // snapshot listed, by index of the site.
  struct Place {
    std::uint32_t site;
    std::uint32_t state;
  };
  std::vector<Place> places_;
  std::vector<SiteState> states_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_stack_;  // places, by stack and kind
  std::unordered_map<std::uint32_t, Told> told_;               // as last given out, by number
  std::unordered_set<std::uint32_t> named_;                    // numbers
  std::unordered_map<std::uint32_t, double> resident_;         // shares, by number
};

}  // namespace tidemark::reader
