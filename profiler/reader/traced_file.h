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
// what has changed since. Not thread-safe.
class TracedFile {
 public:
  struct SiteState {
    std::uint32_t leader = 0;  // the first site that was seen of this stack and kind
    std::uint32_t number = 0;  // in the run; 0: not followed
    std::uint64_t first_live_bytes = 0;
    std::uint64_t most_live_bytes = 0;  // at any look
  };

  TracedFile(std::string name, ProcessKey key, TraceFile file)
      : name_(std::move(name)), key_(key), file_(std::move(file)) {}

  const std::string& name() const { return name_; }
  const ProcessKey& key() const { return key_; }
  TraceFile& file() { return file_; }
  const TraceSnapshot& last() const { return last_; }

  // Reads the counters. After an error last() is what it was.
  Status read();
  // Seconds since the file was created, or a step; written only when it changes.
  void set_epoch(std::int64_t now_ns, std::optional<std::uint32_t> step);

  // Of a site of last().
  SiteState& state(const SiteCounts& site) { return states_[places_[site.index]]; }
  // The site that stands for all with the same stack and kind: the one that last() has.
  std::uint32_t leader_of(std::uint32_t site) const {
    const SiteState* const state = state_of(site);
    return state == nullptr ? site : state->leader;
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
  void set_resident_share(std::uint32_t site, double share);

 private:
  static constexpr std::uint32_t kNoPlace = UINT32_MAX;

  void merge_sites();
  // nullptr: the site is not known.
  const SiteState* state_of(std::uint32_t site) const {
    return site < places_.size() && places_[site] != kNoPlace ? &states_[places_[site]] : nullptr;
  }
  std::uint32_t place_of(const SiteCounts& site);
  SiteSample sample_of(const SiteCounts& site, const SiteState& state) const;

  std::string name_;
  ProcessKey key_;
  TraceFile file_;
  TraceSnapshot last_;
  bool has_been_read_ = false;
  std::optional<std::uint32_t> epoch_;
  // Several sites may have one stack; they have one state. Where it is, by index of the site: a
  // file may have few sites with large indices.
  std::vector<std::uint32_t> places_;
  std::vector<SiteState> states_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_stack_;  // places, by stack and kind
  std::unordered_map<std::uint32_t, SiteSample> told_;         // as last given out, by number
  std::unordered_set<std::uint32_t> named_;                    // numbers
  std::vector<std::pair<std::uint32_t, double>> resident_;     // by index of the site
};

}  // namespace tidemark::reader
