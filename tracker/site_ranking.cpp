// SPDX-License-Identifier: Apache-2.0
#include "tracker/site_ranking.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "tracker/judge.h"
#include "tracker/statistics.h"

namespace tidemark::tracker {
namespace {

double as_double(std::uint64_t bytes) { return static_cast<double>(bytes); }

// One site of one process, judged.
struct JudgedSite {
  const SiteTrack* track = nullptr;
  const TracedProcess* process = nullptr;
  Reading reading;
  double per_s = 0.0;
  std::optional<double> per_step;
  double growth_bytes = 0.0;
  Moment since;

  bool grows() const { return reading.verdict >= Verdict::kGrowing; }
};

double grown_bytes(const SiteTrack& site) {
  return as_double(site.last.live_bytes) - as_double(site.first_live_bytes);
}

// Memory that was asked for and never touched costs nothing.
double resident_share(const SiteSample& sample) {
  if (!sample.resident_bytes || sample.live_bytes == 0) {
    return 1.0;
  }
  return std::min(1.0, as_double(*sample.resident_bytes) / as_double(sample.live_bytes));
}

const Pattern* growth_pattern(const Reading& reading) {
  const Pattern* leak = reading.find(PatternKind::kLeak);
  return leak != nullptr ? leak : reading.find(PatternKind::kGrowth);
}

// The rate of a site is that of the straight line through its floor since growth began. A curve
// that was estimated from samples wanders: its leaps, which the judge takes for steps that stay,
// are part of the rate.
void fit_rate(JudgedSite& site) {
  const Reading& reading = site.reading;
  const bool on_steps = reading.axis == Axis::kSteps;
  const double from = (on_steps ? site.since.step : site.since.t_s).value_or(0.0);
  std::vector<double> x;
  std::vector<double> y;
  const FloorPoint* first = nullptr;
  const FloorPoint* last = nullptr;
  for (const FloorPoint& point : reading.floor) {
    if (point.x >= from) {
      x.push_back(point.x);
      y.push_back(point.floor_bytes);
      first = first == nullptr ? &point : first;
      last = &point;
    }
  }
  constexpr std::size_t kFewest = 4;
  if (x.size() < kFewest) {
    return;
  }
  const double slope = fit_line(x, y).slope;
  site.growth_bytes = y.back() - y.front();
  if (!on_steps) {
    site.per_s = slope;
    return;
  }
  site.per_step = slope;
  if (first->at.t_s && last->at.t_s && *last->at.t_s > *first->at.t_s) {
    site.per_s = slope * (x.back() - x.front()) / (*last->at.t_s - *first->at.t_s);
  }
}

void measure_growth(JudgedSite& site) {
  const Reading& reading = site.reading;
  if (!site.grows()) {
    return;
  }
  if (const Pattern* pattern = growth_pattern(reading)) {
    site.per_s = pattern->rate.bytes_per_s.value_or(0.0);
    site.per_step = pattern->rate.bytes_per_step;
    site.growth_bytes = pattern->growth_bytes;
    site.since = pattern->from;
  } else {  // too few points for a pattern
    site.growth_bytes = reading.last_floor_bytes - reading.first_floor_bytes;
    site.since = reading.begin;
  }
  if (site.per_s == 0.0 && reading.end.t_s && site.since.t_s &&
      *reading.end.t_s > *site.since.t_s) {
    site.per_s = site.growth_bytes / (*reading.end.t_s - *site.since.t_s);
  }
  fit_rate(site);
  const double share = resident_share(site.track->last);
  site.per_s *= share;
  site.growth_bytes *= share;
  if (site.per_step) {
    *site.per_step *= share;
  }
}

// Those that grew most and those that are largest.
std::vector<JudgedSite> candidates(const RunSites& run, std::size_t most) {
  std::vector<JudgedSite> all;
  for (const TracedProcess& process : run.processes) {
    for (const std::size_t i : process.sites) {
      const SiteTrack& track = run.sites[i];
      if (!track.live.empty() && track.record.kind != AllocationKind::kAllocatorMap) {
        all.emplace_back();
        all.back().track = &track;
        all.back().process = &process;
      }
    }
  }
  const auto by_growth = [](const JudgedSite& a, const JudgedSite& b) {
    return std::pair(grown_bytes(*b.track), a.track->record.site) <
           std::pair(grown_bytes(*a.track), b.track->record.site);
  };
  const auto by_size = [](const JudgedSite& a, const JudgedSite& b) {
    return std::pair(b.track->last.live_bytes, a.track->record.site) <
           std::pair(a.track->last.live_bytes, b.track->record.site);
  };
  const auto half = static_cast<std::ptrdiff_t>(std::min(all.size(), (most + 1) / 2));
  std::partial_sort(all.begin(), all.begin() + half, all.end(), by_growth);
  const auto rest = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(most) - half,
                                             static_cast<std::ptrdiff_t>(all.size()) - half);
  std::partial_sort(all.begin() + half, all.begin() + half + rest, all.end(), by_size);
  all.erase(all.begin() + half + rest, all.end());
  return all;
}

// Between two samples in proportion to the time; beyond the ends what they say.
double interpolated(const std::vector<Cell>& cells, double t_s) {
  const auto after = std::upper_bound(cells.begin(), cells.end(), t_s,
                                      [](double at, const Cell& cell) { return at < cell.t_s; });
  if (after == cells.begin() || after == cells.end()) {
    return after == cells.begin() ? cells.front().mean_bytes() : cells.back().mean_bytes();
  }
  const Cell& before = *std::prev(after);
  const double share = (t_s - before.t_s) / (after->t_s - before.t_s);
  return before.mean_bytes() + share * (after->mean_bytes() - before.mean_bytes());
}

// What a process grew by between two times. Its memory and its sites are not looked at in the same
// moment.
std::optional<double> change(const Series& series, double from_s, double to_s) {
  const std::vector<Cell>& cells = series.cells();
  if (cells.empty()) {
    return std::nullopt;
  }
  return interpolated(cells, to_s) - interpolated(cells, from_s);
}

// The end of what a process held: its samples of memory may go on for a moment longer.
double end_of(const TracedProcess& process) { return process.last_look_s; }

// Sites of processes that ended long before the others of their group hold nothing any more.
bool is_of_the_end(const TracedProcess& process, double end_s) {
  return process.last_look_s >= end_s - std::max(2.0, 0.02 * end_s);
}

// What a site that grows held before a process that ends gave all of it back.
const SiteSample& held_by(const JudgedSite& site) {
  const bool is_given_back =
      site.grows() && as_double(site.track->last.live_bytes) < 0.5 * site.reading.last_floor_bytes;
  return is_given_back ? site.track->highest : site.track->last;
}

void add_member(RankedSite& group, const JudgedSite& site) {
  const SiteSample& last = held_by(site);
  group.live_bytes += last.live_bytes;
  group.live_blocks += last.live_blocks;
  group.alloc_bytes += last.alloc_bytes;
  group.alloc_blocks += last.alloc_blocks;
  group.peak_bytes += last.peak_bytes;
  group.temporary_blocks += last.temporary_blocks;
  if (last.resident_bytes) {
    group.resident_bytes = group.resident_bytes.value_or(0) + *last.resident_bytes;
  }
  group.is_truncated = group.is_truncated || site.track->record.is_truncated;
  group.growth_bytes_per_s += site.per_s;
  group.growth_bytes += site.growth_bytes;
  if (site.per_step) {
    group.growth_bytes_per_step = group.growth_bytes_per_step.value_or(0.0) + *site.per_step;
  }
}

void add_share(RankedSite& group, const std::vector<const JudgedSite*>& members) {
  double of_processes = 0.0;
  for (const JudgedSite* site : members) {
    if (site->grows() && site->since.t_s) {
      of_processes +=
          change(site->process->footprint, *site->since.t_s, end_of(*site->process)).value_or(0.0);
    }
  }
  constexpr double kWorthAShare = 256.0 * 1024.0;
  if (of_processes >= kWorthAShare && !is_counted_elsewhere(group.kind) &&
      group.kind != AllocationKind::kCudaDevice) {
    group.share_of_growth = group.growth_bytes / of_processes;
  }
}

RankedSite make_group(std::vector<const JudgedSite*> members) {
  std::stable_sort(members.begin(), members.end(), [](const JudgedSite* a, const JudgedSite* b) {
    return a->track->last.live_bytes > b->track->last.live_bytes;
  });
  double end_s = 0.0;
  for (const JudgedSite* site : members) {
    end_s = std::max(end_s, site->process->last_look_s);
  }
  std::erase_if(members,
                [&](const JudgedSite* site) { return !is_of_the_end(*site->process, end_s); });
  RankedSite group;
  const JudgedSite& largest = *members.front();
  group.kind = largest.track->record.kind;
  group.role = largest.process->role;
  group.frames = largest.track->record.frames;
  if (largest.track->births) {
    group.births = largest.track->births->births;
  }
  const JudgedSite* leading = &largest;
  for (const JudgedSite* site : members) {
    const ProcessKey& key = site->process->key;
    if (std::find(group.processes.begin(), group.processes.end(), key) == group.processes.end()) {
      group.processes.push_back(key);
    }
    add_member(group, *site);
    if (std::pair(site->reading.verdict, site->per_s) >
        std::pair(leading->reading.verdict, leading->per_s)) {
      leading = site;
    }
  }
  group.verdict = leading->reading.verdict;
  group.undetermined = leading->reading.undetermined;
  group.needs = leading->reading.needs;
  group.since = leading->since;
  if (group.grows()) {
    add_share(group, members);
  }
  return group;
}

bool goes_before(const RankedSite& a, const RankedSite& b) {
  const auto place = [](const RankedSite& site) {
    return std::tuple(site.grows() && site.growth_bytes_per_s > 0.0, site.growth_bytes_per_s,
                      site.live_bytes);
  };
  return place(a) != place(b) ? place(a) > place(b) : a.frames < b.frames;
}

std::vector<ProcessGrowth> growth_of_processes(const RunSites& run,
                                               const std::vector<JudgedSite>& sites) {
  std::unordered_map<const TracedProcess*, const JudgedSite*> fastest;
  for (const JudgedSite& site : sites) {
    const JudgedSite*& best = fastest[site.process];
    if (site.grows() && site.since.t_s && (best == nullptr || site.per_s > best->per_s)) {
      best = &site;
    }
  }
  std::vector<ProcessGrowth> all;
  for (std::size_t i = 0; i < run.processes.size(); ++i) {
    const TracedProcess& process = run.processes[i];
    const auto it = fastest.find(&process);
    const JudgedSite* site = it == fastest.end() ? nullptr : it->second;
    ProcessGrowth& growth = all.emplace_back();
    growth.process = i;
    growth.from_s = site != nullptr ? *site->since.t_s : process.first_look_s;
    if (!process.footprint.empty()) {  // the first look may come before the first sample of memory
      growth.from_s = std::max(growth.from_s, process.footprint.cells().front().t_s);
    }
    growth.to_s = end_of(process);
    growth.footprint_bytes = change(process.footprint, growth.from_s, growth.to_s);
    growth.shared_bytes = change(process.shared, growth.from_s, growth.to_s);
    growth.file_bytes = change(process.file, growth.from_s, growth.to_s);
    growth.sites_bytes = change(process.live, growth.from_s, growth.to_s).value_or(0.0);
    const auto footprint = value_at(process.footprint, growth.to_s);
    if (footprint && *footprint > 0.0) {
      growth.explained_share = std::min(1.0, as_double(process.last.live_bytes) / *footprint);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const ProcessGrowth& a, const ProcessGrowth& b) {
    return a.footprint_bytes.value_or(0.0) > b.footprint_bytes.value_or(0.0);
  });
  return all;
}

}  // namespace

SiteRanking rank_sites(const RunSites& run, const Options& options, std::size_t most_judged) {
  std::vector<JudgedSite> sites = candidates(run, most_judged);
  for (JudgedSite& site : sites) {
    Options own = options;
    own.limit_bytes.reset();
    site.reading = judge(site.track->live, own);
    measure_growth(site);
  }
  using Stack = std::tuple<Role, AllocationKind, std::vector<std::uint32_t>, std::uint32_t>;
  std::map<Stack, std::vector<const JudgedSite*>> groups;
  for (const JudgedSite& site : sites) {
    const SiteRecord& record = site.track->record;
    // A stack that has no names yet is like no other.
    groups[{site.process->role, record.kind, record.frames,
            record.frames.empty() ? record.site : 0}]
        .push_back(&site);
  }
  SiteRanking ranking;
  for (auto& [stack, members] : groups) {
    ranking.sites.push_back(make_group(std::move(members)));
  }
  std::stable_sort(ranking.sites.begin(), ranking.sites.end(), goes_before);
  ranking.processes = growth_of_processes(run, sites);
  return ranking;
}

}  // namespace tidemark::tracker
