// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/site_ranking.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "tracker/curve/judge.h"
#include "tracker/sites/site_growth.h"
#include "tracker/sites/stack_lines.h"

namespace tidemark::tracker {
namespace {

// Growth of less, in bytes, is not set beside that of its process.
constexpr double kWorthComparing = 256.0 * 1024.0;

// Sites of processes that ended long before the others of their group hold nothing any more.
bool is_of_the_end(const TracedProcess& process, double end_s) {
  return process.last_sample_s >= end_s - std::max(2.0, 0.02 * end_s);
}

// In a stretch of fewer samples the two sides of the division are hardly of the same moments.
bool is_long_enough(const TracedProcess& process, double from_s, double to_s) {
  constexpr std::ptrdiff_t kFewest = 8;
  const std::vector<Cell>& cells = process.footprint.cells();
  return std::count_if(cells.begin(), cells.end(), [&](const Cell& cell) {
           return cell.t_s >= from_s && cell.t_s <= to_s;
         }) >= kFewest;
}

// What is resident of the live bytes of a process: as it was when somebody last looked, and all of
// what came since.
std::optional<double> resident_live_bytes(const TracedProcess& process, double t_s) {
  const auto live = value_at(process.live, t_s);
  const std::vector<Cell>& looks = process.blocks.cells();
  const auto after = std::upper_bound(looks.begin(), looks.end(), t_s,
                                      [](double at, const Cell& cell) { return at < cell.t_s; });
  if (!live || after == looks.begin()) {
    return live;
  }
  const Cell& last = *std::prev(after);
  const double since = *live - value_at(process.live, last.t_s).value_or(*live);
  return std::clamp(last.mean_bytes() + since, 0.0, *live);
}

// Which share of the footprint sites explain. They cannot hold more than there is beside the rest;
// where they seem to, nobody looked what of them is resident, and the share is not known.
void explain(ProcessGrowth& growth) {
  constexpr double kOfOtherMoments = 1.05;  // the parts were not read at one time
  MemoryParts& now = growth.now;
  if (!now.footprint || *now.footprint <= 0.0) {
    return;
  }
  const double sites = now.sites.value_or(0.0);
  const double room =
      std::max(0.0, *now.footprint - now.shared.value_or(0.0) - now.unhooked.value_or(0.0));
  if (sites > room) {
    now.sites = room;
  }
  if (sites <= kOfOtherMoments * room) {
    growth.explained_share = std::min(sites, room) / *now.footprint;
  }
}

// Where a process begins to give back what it held, because it ends: by its blocks and, whose
// samples are later ones, by its footprint.
double end_without_teardown(const TracedProcess& process, const Options& options) {
  double end_s = process.last_sample_s;
  for (const Series* series : {&process.live, &process.footprint}) {
    end_s = std::min(end_s, judge(*series, options).end.t_s.value_or(end_s));
  }
  return end_s;
}

using ProcessEnds = std::unordered_map<const TracedProcess*, double>;

// Where sites and footprint can be set side by side.
double end_of_both(const JudgedSites& sites, const ProcessEnds& ends) {
  return std::min(end_of(sites), ends.at(sites.process));
}

// Each member is of a process of its own.
void add_share(HeldMemory& held, const std::vector<const JudgedSites*>& members,
               const ProcessEnds& ends) {
  double of_processes = 0.0;
  for (const JudgedSites* sites : members) {
    if (!sites->grows() || !sites->since.t_s) {
      continue;
    }
    const double end_s = end_of_both(*sites, ends);
    if (!is_long_enough(*sites->process, *sites->since.t_s, end_s)) {
      return;
    }
    of_processes += change(sites->process->footprint, *sites->since.t_s, end_s).value_or(0.0);
  }
  if (of_processes >= kWorthComparing && !is_counted_elsewhere(held.kind) &&
      held.kind != AllocationKind::kCudaDevice) {
    held.share_of_growth = held.growth_bytes / of_processes;
  }
}

void add_member(HeldMemory& held, const JudgedSites& sites) {
  add_held(held, held_by(sites));
  held.growth_bytes_per_s += sites.per_s;
  held.growth_bytes += sites.growth_bytes;
  if (sites.per_step) {
    held.growth_bytes_per_step = held.growth_bytes_per_step.value_or(0.0) + *sites.per_step;
  }
}

// When the live bytes of all tracks were allocated. They are of one scan of one process, which
// divides the time in one way.
std::vector<SiteAges::Interval> ages_of(const JudgedSites& sites) {
  std::vector<SiteAges::Interval> sum;
  for (const SiteTrack* track : sites.tracks) {
    if (!track->ages) {
      continue;
    }
    const std::vector<SiteAges::Interval>& ages = track->ages->intervals;
    if (ages.size() > sum.size()) {  // an earlier scan, by which the site was gone
      sum = ages;
      continue;
    }
    for (std::size_t i = 0; i < ages.size() && ages.size() == sum.size(); ++i) {
      sum[i].bytes += ages[i].bytes;
    }
  }
  return sum;
}

std::uint64_t live_bytes_of(const JudgedSites& sites) {
  std::uint64_t bytes = 0;
  for (const SiteTrack* track : sites.tracks) {
    bytes += track->last.live_bytes;
  }
  return bytes;
}

// All processes of one role together, one member each. `members` is not empty, and is left with the
// largest first.
HeldMemory add_up(std::vector<const JudgedSites*>& members, const ProcessEnds& ends) {
  std::stable_sort(members.begin(), members.end(), [](const JudgedSites* a, const JudgedSites* b) {
    return live_bytes_of(*a) > live_bytes_of(*b);
  });
  double end_s = 0.0;
  for (const JudgedSites* sites : members) {
    end_s = std::max(end_s, sites->process->last_sample_s);
  }
  std::erase_if(members,
                [&](const JudgedSites* sites) { return !is_of_the_end(*sites->process, end_s); });
  HeldMemory held;
  const JudgedSites& largest = *members.front();
  held.kind = largest.tracks.front()->record.kind;
  held.role = largest.process->role;
  held.ages = ages_of(largest);
  const JudgedSites* leading = &largest;
  for (const JudgedSites* sites : members) {
    const ProcessKey& key = sites->process->key;
    if (std::find(held.processes.begin(), held.processes.end(), key) == held.processes.end()) {
      held.processes.push_back(key);
    }
    add_member(held, *sites);
    if (std::pair(sites->series.verdict, sites->per_s) >
        std::pair(leading->series.verdict, leading->per_s)) {
      leading = sites;
    }
  }
  held.verdict = leading->series.verdict;
  held.undetermined = leading->series.undetermined;
  held.needs = leading->series.needs;
  held.warmup_ignored = leading->series.warmup_ignored;
  held.min_leak_ignored = leading->series.min_leak_ignored;
  held.since = leading->since;
  held.came_at_once =
      held.grows() && std::all_of(members.begin(), members.end(), [](const auto* each) {
        return each->came_at_once || !each->grows();
      });
  if (held.grows()) {
    add_share(held, members, ends);
  }
  return held;
}

// The fastest first, then the largest. What came at once, however much, hides nothing that goes on.
bool goes_before(const HeldMemory& a, const HeldMemory& b) {
  return std::tuple(a.grows(), !a.came_at_once, a.growth_bytes_per_s, a.live_bytes) >
         std::tuple(b.grows(), !b.came_at_once, b.growth_bytes_per_s, b.live_bytes);
}

// Host memory, memory of the device, and what is in another site's sum already do not add up.
int sort_of_memory(AllocationKind kind) {
  if (is_counted_elsewhere(kind)) {
    return 2;
  }
  return kind == AllocationKind::kCudaDevice ? 1 : 0;
}

template <typename Of>
MemoryParts parts_of(const TracedProcess& process, Of of) {
  return {of(process.live),   of(process.slack),     of(process.unhooked),
          of(process.shared), of(process.footprint), of(process.file)};
}

class Ranking {
 public:
  Ranking(const RunSites& run, const Options& options) : run_(run), options_(options) {
    options_.limit_bytes.reset();
    options_.epoch_steps = options.epoch_steps ? options.epoch_steps : run.epoch_steps;
    options_.epoch_seconds = options.epoch_seconds ? options.epoch_seconds : run.epoch_seconds;
  }

  SiteRanking rank(std::size_t most_judged, bool only_lines) && {
    for (const TracedProcess& process : run_.processes) {
      ends_[&process] = end_without_teardown(process, options_);
    }
    for (CandidateStack& stack : candidate_stacks(run_, most_judged)) {
      judged_.push_back(judge_sites(*stack.process, std::move(stack.tracks), run_.steps, options_));
    }
    rank_stacks();
    rank_lines();
    if (!only_lines) {
      rank_groups(own_function, ranking_.functions);
      rank_groups(native_line, ranking_.natives);
    }
    growth_of_processes();
    return std::move(ranking_);
  }

 private:
  struct Stack {
    RankedSite site;
    std::vector<const JudgedSites*> members;
    double held_bytes = 0.0;  // not only at the end, when a process may have given all back
    std::vector<std::string> lines;
  };

  void rank_stacks() {
    using Key = std::tuple<Role, AllocationKind, std::vector<std::uint32_t>, std::uint32_t>;
    std::map<Key, std::vector<const JudgedSites*>> groups;
    for (const JudgedSites& sites : judged_) {
      const SiteRecord& record = sites.tracks.front()->record;
      // A stack that has no names yet is like no other.
      groups[{sites.process->role, record.kind, record.frames,
              record.frames.empty() ? record.site : 0}]
          .push_back(&sites);
    }
    for (auto& [key, members] : groups) {
      Stack& stack = stacks_.emplace_back();
      static_cast<HeldMemory&>(stack.site) = add_up(members, ends_);
      stack.site.frames = std::get<2>(key);
      for (const JudgedSites* sites : members) {
        for (const SiteTrack* track : sites->tracks) {
          stack.held_bytes += held_late(*track);
          stack.site.is_truncated = stack.site.is_truncated || track->record.is_truncated;
        }
      }
      stack.members = std::move(members);
    }
    std::stable_sort(stacks_.begin(), stacks_.end(),
                     [](const Stack& a, const Stack& b) { return goes_before(a.site, b.site); });
    for (const Stack& stack : stacks_) {
      ranking_.sites.push_back(stack.site);
    }
  }

  // Stacks of one name, role and sort of memory. One without a name is alone.
  using GroupKey = std::tuple<Role, int, std::string, std::size_t>;
  using Groups = std::map<GroupKey, std::vector<std::size_t>>;
  void put_into(Groups& groups, std::size_t i, const std::string& name) const {
    const RankedSite& site = stacks_[i].site;
    groups[{site.role, sort_of_memory(site.kind), name, name.empty() ? i + 1 : 0}].push_back(i);
  }

  void rank_lines() {
    Groups groups;
    for (std::size_t i = 0; i < stacks_.size(); ++i) {
      Stack& stack = stacks_[i];
      stack.lines = own_lines(run_, stack.site.frames);
      put_into(groups, i, stack.lines.empty() ? "" : stack.lines.front());
    }
    for (auto& [key, sites] : groups) {
      add_line(std::get<2>(key), std::move(sites));
    }
    sort(ranking_.lines);
  }

  static void sort(std::vector<RankedLine>& lines) {
    std::stable_sort(lines.begin(), lines.end(), [](const RankedLine& a, const RankedLine& b) {
      return goes_before(a, b) || (!goes_before(b, a) && a.sites.front() < b.sites.front());
    });
  }

  template <typename NameOf>
  void rank_groups(NameOf name_of, std::vector<RankedLine>& ranked) const {
    Groups groups;
    for (std::size_t i = 0; i < stacks_.size(); ++i) {
      put_into(groups, i, name_of(run_, stacks_[i].site.frames));
    }
    for (auto& [key, sites] : groups) {
      RankedLine& line = ranked.emplace_back();
      static_cast<HeldMemory&>(line) = held_by_stacks(sites);
      line.name = std::get<2>(key);
      line.sites = std::move(sites);
    }
    sort(ranked);
  }

  // A function often has the stacks of one line, which are judged already.
  HeldMemory held_by_stacks(const std::vector<std::size_t>& sites) const {
    if (sites.size() == 1) {
      return ranking_.sites[sites.front()];
    }
    const auto line = std::find_if(ranking_.lines.begin(), ranking_.lines.end(),
                                   [&](const RankedLine& each) { return each.sites == sites; });
    if (line == ranking_.lines.end()) {
      return sum_of(sites);
    }
    const HeldMemory& held = *line;
    return held;
  }

  void add_line(const std::string& name, std::vector<std::size_t> sites) {
    RankedLine line;
    static_cast<HeldMemory&>(line) = held_by_stacks(sites);
    const auto narrower = line_of_growth(sites);
    // Much that stands still must not hide what grows slowly; what is only moved does not grow.
    const bool is_hidden = !line.grows() && has_growth(sites) && !is_made_up_for(sites);
    if (is_hidden || (line.grows() && narrower)) {
      const auto rest = std::stable_partition(sites.begin(), sites.end(), [&](std::size_t i) {
        return narrower ? has(stacks_[i], *narrower) : stacks_[i].site.grows();
      });
      if (rest != sites.begin() && rest != sites.end()) {
        add_line(name, {rest, sites.end()});
        add_line(narrower.value_or(name), {sites.begin(), rest});
        return;
      }
    }
    line.name = name;
    line.sites = std::move(sites);
    ranking_.lines.push_back(std::move(line));
  }

  static bool has(const Stack& stack, const std::string& line) {
    return std::find(stack.lines.begin(), stack.lines.end(), line) != stack.lines.end();
  }

  bool has_growth(const std::vector<std::size_t>& sites) const {
    return std::any_of(sites.begin(), sites.end(),
                       [&](std::size_t i) { return stacks_[i].site.grows(); });
  }

  // Whether the other stacks gave back about what the growing ones took.
  bool is_made_up_for(const std::vector<std::size_t>& sites) const {
    constexpr double kAboutAll = 0.5;
    double grown = 0.0;
    double others = 0.0;
    for (const std::size_t i : sites) {  // the fastest first
      const RankedSite& site = stacks_[i].site;
      grown += site.grows() ? site.growth_bytes : 0.0;
      const double from_s = stacks_[sites.front()].site.since.t_s.value_or(0.0);
      for (const JudgedSites* member : stacks_[i].members) {
        for (const SiteTrack* track : member->tracks) {
          others += site.grows() ? 0.0 : change(track->live, from_s, end_of(*member)).value_or(0.0);
        }
      }
    }
    return others <= -kAboutAll * grown;
  }

  // The innermost line that about all growth goes through, and little else; nullopt: there is none,
  // or it is the one that all stacks begin with. A stack of few blocks may not grow by itself and
  // yet be part of the leak.
  std::optional<std::string> line_of_growth(const std::vector<std::size_t>& sites) const {
    constexpr double kAboutAll = 0.9;  // of the growth
    constexpr double kLittle = 0.1;    // of what those hold that grow
    const auto tells = [&](const std::string& line) {
      double growing_bytes = 0.0;
      double other_bytes = 0.0;
      double growth = 0.0;
      double growth_through = 0.0;
      for (const std::size_t i : sites) {
        const HeldMemory& held = stacks_[i].site;
        const bool is_through = has(stacks_[i], line);
        growing_bytes += held.grows() ? stacks_[i].held_bytes : 0.0;
        other_bytes += is_through && !held.grows() ? stacks_[i].held_bytes : 0.0;
        growth += held.grows() ? held.growth_bytes_per_s : 0.0;
        growth_through += is_through && held.grows() ? held.growth_bytes_per_s : 0.0;
      }
      return growth_through >= kAboutAll * growth && other_bytes < kLittle * growing_bytes;
    };
    const Stack& fastest = stacks_[sites.front()];  // the fastest come first
    if (!fastest.site.grows()) {
      return std::nullopt;
    }
    const auto line = std::find_if(fastest.lines.begin(), fastest.lines.end(), tells);
    const bool is_further_out = line != fastest.lines.begin() && line != fastest.lines.end();
    return is_further_out ? std::optional(*line) : std::nullopt;
  }

  // Stacks of one line are judged together, process by process: what is noise in each of them is
  // less so in their sum, and what one gives back while another takes it is no growth.
  HeldMemory sum_of(const std::vector<std::size_t>& stacks) const {
    std::map<std::size_t, std::vector<const SiteTrack*>> tracks;  // by process
    for (const std::size_t i : stacks) {
      for (const JudgedSites* sites : stacks_[i].members) {
        const auto process = static_cast<std::size_t>(sites->process - run_.processes.data());
        std::vector<const SiteTrack*>& all = tracks[process];
        all.insert(all.end(), sites->tracks.begin(), sites->tracks.end());
      }
    }
    std::vector<JudgedSites> judged;
    judged.reserve(tracks.size());
    for (auto& [process, each] : tracks) {
      judged.push_back(judge_sites(run_.processes[process], std::move(each), run_.steps, options_));
    }
    std::vector<const JudgedSites*> members;
    members.reserve(judged.size());
    for (const JudgedSites& sites : judged) {
      members.push_back(&sites);
    }
    return add_up(members, ends_);
  }

  void growth_of_processes() {
    std::unordered_map<const TracedProcess*, const JudgedSites*> fastest;
    for (const JudgedSites& sites : judged_) {
      const JudgedSites*& best = fastest[sites.process];
      if (sites.grows() && sites.growth_bytes >= kWorthComparing && sites.since.t_s &&
          (best == nullptr || std::pair(!sites.came_at_once, sites.per_s) >
                                  std::pair(!best->came_at_once, best->per_s))) {
        best = &sites;
      }
    }
    for (std::size_t i = 0; i < run_.processes.size(); ++i) {
      const auto it = fastest.find(&run_.processes[i]);
      const JudgedSites* sites = it == fastest.end() ? nullptr : it->second;
      ranking_.processes.push_back(growth_of(i, sites));
    }
    std::stable_sort(ranking_.processes.begin(), ranking_.processes.end(),
                     [](const ProcessGrowth& a, const ProcessGrowth& b) {
                       return a.growth.footprint.value_or(0.0) > b.growth.footprint.value_or(0.0);
                     });
  }

  // `fastest`: of its sites; nullptr when none grows.
  ProcessGrowth growth_of(std::size_t index, const JudgedSites* fastest) const {
    const TracedProcess& process = run_.processes[index];
    ProcessGrowth growth;
    growth.process = index;
    growth.from_s = fastest != nullptr ? *fastest->since.t_s : process.first_sample_s;
    if (!process.footprint.empty()) {  // the first look may come before the first sample of memory
      growth.from_s = std::max(growth.from_s, process.footprint.cells().front().t_s);
    }
    growth.to_s = fastest != nullptr ? end_of_both(*fastest, ends_) : ends_.at(&process);
    growth.growth = parts_of(
        process, [&](const Series& series) { return change(series, growth.from_s, growth.to_s); });
    growth.now =
        parts_of(process, [&](const Series& series) { return value_at(series, growth.to_s); });
    growth.now.sites = resident_live_bytes(process, growth.to_s);
    growth.account_age_s = age_at(process.slack, growth.to_s);
    explain(growth);
    return growth;
  }

  const RunSites& run_;
  Options options_;
  ProcessEnds ends_;
  std::vector<JudgedSites> judged_;  // one stack of one process each
  std::vector<Stack> stacks_;        // in the order of ranking_.sites
  SiteRanking ranking_;
};

}  // namespace

SiteRanking rank_sites(const RunSites& run, const Options& options, std::size_t most_judged) {
  return Ranking(run, options).rank(most_judged, /*only_lines=*/false);
}

SiteRanking rank_lines(const RunSites& run, const Options& options, std::size_t most_judged) {
  return Ranking(run, options).rank(most_judged, /*only_lines=*/true);
}

}  // namespace tidemark::tracker
