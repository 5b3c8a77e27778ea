// SPDX-License-Identifier: Apache-2.0
#include "tracker/sites/site_tracks.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace tidemark::tracker {
namespace {

// The last looks at a process that has ended may have come while it gave its memory back.
void leave_out_teardown(TracedProcess& process) {
  constexpr std::ptrdiff_t kLooks = 4;
  constexpr double kStillUp = 0.95;
  const std::vector<Cell>& cells = process.live.cells();
  if (cells.empty()) {
    return;
  }
  const auto low = [](const Cell& a, const Cell& b) { return a.min_bytes < b.min_bytes; };
  const auto first = cells.end() - std::min(kLooks, std::ssize(cells));
  const double high = std::max_element(first, cells.end(), low)->min_bytes;
  auto last = std::prev(cells.end());
  while (last->min_bytes < kStillUp * high) {
    process.last_sample_s = (--last)->t_s;
  }
}

}  // namespace

Status SiteTrackBuilder::begin(const RunInfo& /*info*/) { return ok(); }

Status SiteTrackBuilder::add(const Tick& tick) {
  run_.end_s = tick.t_s;
  for (const ProcessRecord& process : tick.new_processes) {
    take_record(process);
  }
  const AllocationFacts& facts = tick.allocations;
  for (const ModuleRecord& module : facts.modules) {
    ModuleRecord& own = run_.modules[module.module] = module;
    bound_names(own);
  }
  for (const FrameRecord& frame : facts.frames) {
    FrameRecord& own = run_.frames[frame.frame] = frame;
    bound_names(own);
    run_.file_names.add(own);
  }
  for (const SiteRecord& site : facts.sites) {
    take_record(site);
  }
  for (const SiteSample& sample : facts.samples) {
    current_[sample.site] = sample;
  }
  // Samples and markers in the order of time, so that each sample finds its step.
  std::vector<const TraceSample*> samples;
  for (const TraceSample& trace : facts.traces) {
    samples.push_back(&trace);
  }
  std::stable_sort(samples.begin(), samples.end(),
                   [](const TraceSample* a, const TraceSample* b) { return a->t_s < b->t_s; });
  auto marker = tick.markers.begin();
  for (const TraceSample* sample : samples) {
    for (; marker != tick.markers.end() && marker->t_s <= sample->t_s; ++marker) {
      take_marker(*marker);
    }
    take_sample(*sample);
  }
  for (; marker != tick.markers.end(); ++marker) {
    take_marker(*marker);
  }
  for (const SiteAges& ages : facts.ages) {
    if (const auto it = numbers_.find(ages.site); it != numbers_.end()) {
      run_.sites[it->second].ages = ages;
    }
  }
  for (const MemoryAccount& account : facts.accounts) {
    take_account(account);
  }
  if (facts.shm) {
    run_.shm = *facts.shm;
  }
  for (const ProcessSample& sample : tick.processes) {
    take_memory(sample);
  }
  for (const UntracedProcess& process : facts.untraced) {
    run_.untraced.set_reason(process);
  }
  for (const LossRecord& loss : tick.losses) {
    take_loss(loss);
  }
  if (tick.step) {
    run_.last_step = tick.step;
  }
  return ok();
}

Status SiteTrackBuilder::process_ended(const ProcessRecord& process) {
  constexpr std::size_t kMostLabels = 1024;
  if (step_source_ == process.key) {
    step_source_.reset();
  }
  run_.untraced.end(process.key);
  exited_.push_back(process.key);
  if (exited_.size() > kMostLabels) {
    labels_.erase(exited_.front());
    exited_.pop_front();
  }
  return ok();
}

Status SiteTrackBuilder::end(double t_s) {
  run_.end_s = std::max(run_.end_s, t_s);
  return ok();
}

void SiteTrackBuilder::take_record(const ProcessRecord& process) {
  ProcessLabel label{process.role, process.rank, process.comm, process.program()};
  run_.untraced.end(process.key);  // the program that it ran before
  if (const auto it = processes_.find(process.key); it != processes_.end()) {
    static_cast<ProcessLabel&>(run_.processes[it->second]) = label;
  }
  labels_[process.key] = std::move(label);
}

ProcessLabel SiteTrackBuilder::label_of(const ProcessKey& key) const {
  const auto label = labels_.find(key);
  return label == labels_.end() ? ProcessLabel() : label->second;
}

void SiteTrackBuilder::take_record(const SiteRecord& site) {
  const auto [it, is_new] = numbers_.try_emplace(site.site, run_.sites.size());
  if (!is_new) {
    run_.sites[it->second].record.frames = site.frames;  // it has been named
    return;
  }
  SiteTrack& track = run_.sites.emplace_back();
  track.record = site;
  track.live = Series(kCells);
  track.first_seen_s = -1.0;
  run_.processes[process_of(site.key, run_.end_s)].sites.push_back(it->second);
}

std::size_t SiteTrackBuilder::process_of(const ProcessKey& key, double t_s) {
  const auto [it, is_new] = processes_.try_emplace(key, run_.processes.size());
  if (is_new) {
    TracedProcess& process = run_.processes.emplace_back();
    process.key = key;
    process.first_sample_s = t_s;
    process.last_sample_s = t_s;
    for (Series* series : {&process.live, &process.footprint, &process.file, &process.shared,
                           &process.blocks, &process.slack, &process.unhooked}) {
      *series = Series(kCells);
    }
    static_cast<ProcessLabel&>(process) = label_of(key);
    run_.untraced.remove(key);
  }
  return it->second;
}

// A process that exits gives memory back at the very end: its last look then tells nothing about
// what it held. One that was killed is seen as it was.
void SiteTrackBuilder::take_sample(const TraceSample& trace) {
  TracedProcess& process = run_.processes[process_of(trace.key, trace.t_s)];
  const bool is_first = process.live.empty();
  const bool is_teardown =
      trace.has_ended && !is_first && trace.live_bytes < process.last.live_bytes;
  const TraceSample before = std::exchange(process.last, trace);
  if (is_teardown) {
    process.last.live_bytes = before.live_bytes;
    process.last.live_blocks = before.live_blocks;
    process.last.rest_bytes = before.rest_bytes;
    process.last.rest_blocks = before.rest_blocks;
  } else {
    process.first_sample_s = is_first ? trace.t_s : process.first_sample_s;
    process.last_sample_s = trace.t_s;
    process.live.add(trace.t_s, kUnknown, as_double(trace.live_bytes));
    for (const std::size_t i : process.sites) {
      SiteTrack& site = run_.sites[i];
      const auto sample = current_.find(site.record.site);
      if (sample == current_.end()) {
        continue;
      }
      if (site.first_seen_s < 0.0) {
        site.first_seen_s = trace.t_s;
        site.first_live_bytes = sample->second.live_bytes;
      }
      site.last = sample->second;
      if (site.last.live_bytes >= site.highest.live_bytes) {
        site.highest = site.last;
      }
      site.live.add(trace.t_s, kUnknown, as_double(sample->second.live_bytes));
    }
  }
  if (trace.has_ended) {
    leave_out_teardown(process);
    for (const std::size_t i : process.sites) {
      current_.erase(run_.sites[i].record.site);
    }
    processes_.erase(trace.key);
    if (++traces_ended_ > kMostExited) {
      forget_exited();
    }
  }
}

// The half of those that have exited, and held least.
void SiteTrackBuilder::forget_exited() {
  const auto most_held = [](const TracedProcess& process) {
    double most = 0.0;
    for (const Cell& cell : process.live.cells()) {
      most = std::max(most, cell.max_bytes);
    }
    return most;
  };
  std::vector<bool> is_traced(run_.processes.size());
  for (const auto& [key, index] : processes_) {
    is_traced[index] = true;
  }
  std::vector<std::pair<double, std::size_t>> exited;
  for (std::size_t i = 0; i < run_.processes.size(); ++i) {
    if (!is_traced[i]) {
      exited.emplace_back(most_held(run_.processes[i]), i);
    }
  }
  const std::size_t half = exited.size() / 2;
  std::nth_element(exited.begin(), exited.begin() + static_cast<std::ptrdiff_t>(half),
                   exited.end());
  std::vector<bool> is_dropped(run_.processes.size());
  for (std::size_t i = 0; i < half; ++i) {
    is_dropped[exited[i].second] = true;
  }
  traces_ended_ = exited.size() - half;
  drop(is_dropped);
}

// Processes by their index, and their sites.
void SiteTrackBuilder::drop(const std::vector<bool>& is_dropped) {
  std::vector<TracedProcess> processes;
  std::vector<SiteTrack> sites;
  std::unordered_map<ProcessKey, std::size_t> traced;
  numbers_.clear();
  for (std::size_t i = 0; i < run_.processes.size(); ++i) {
    TracedProcess& process = run_.processes[i];
    if (is_dropped[i]) {
      const TraceSample& last = process.last;
      ++run_.forgotten.processes;
      run_.forgotten.sites += last.sites;
      run_.forgotten.freed_blocks += last.freed_blocks;
      run_.forgotten.unknown_frees += last.unknown_frees;
      run_.forgotten.dropped_records += last.dropped_records;
      run_.forgotten.truncated_stacks += last.truncated_stacks;
      run_.forgotten.empty_stacks += last.empty_stacks;
      continue;
    }
    for (std::size_t& site : process.sites) {
      numbers_[run_.sites[site].record.site] = sites.size();
      sites.push_back(std::move(run_.sites[site]));
      site = sites.size() - 1;
    }
    if (const auto it = processes_.find(process.key); it != processes_.end() && it->second == i) {
      traced[process.key] = processes.size();
    }
    processes.push_back(std::move(process));
  }
  run_.processes = std::move(processes);
  run_.sites = std::move(sites);
  processes_ = std::move(traced);
}

void SiteTrackBuilder::take_memory(const ProcessSample& sample) {
  const auto footprint = sample.footprint_bytes();
  if (!footprint || sample.state == 'Z' || sample.state == 'X') {
    return;
  }
  const double t_s = run_.end_s;
  const auto it = processes_.find(sample.key);
  if (it == processes_.end()) {
    run_.untraced.add(sample.key, label_of(sample.key), t_s, as_double(*footprint));
    return;
  }
  TracedProcess& process = run_.processes[it->second];
  process.footprint.add(t_s, kUnknown, as_double(*footprint));
  process.shared.add(t_s, kUnknown, as_double(sample.rss_shmem_bytes.value_or(0)));
  if (sample.rss_file_bytes) {
    process.file.add(t_s, kUnknown, as_double(*sample.rss_file_bytes));
  }
}

void SiteTrackBuilder::take_account(const MemoryAccount& account) {
  // The last one of a process may come with the look after which it is no longer traced.
  const auto process =
      std::find_if(run_.processes.rbegin(), run_.processes.rend(),
                   [&](const TracedProcess& each) { return each.key == account.key; });
  if (process == run_.processes.rend()) {
    return;
  }
  process->blocks.add(account.t_s, kUnknown, as_double(account.blocks_bytes));
  process->slack.add(account.t_s, kUnknown, as_double(account.slack_bytes));
  process->unhooked.add(account.t_s, kUnknown, as_double(account.unhooked_bytes));
}

void SiteTrackBuilder::take_marker(const MarkerRecord& marker) {
  if (marker.kind == MarkerKind::kEpoch) {
    epochs_.mark(marker.value,
                 {marker.t_s, run_.steps.empty() ? std::optional<double>()
                                                 : std::optional(run_.steps.last_step())});
    run_.epoch_steps = epochs_.steps();
    run_.epoch_seconds = epochs_.seconds();
    return;
  }
  if (marker.kind != MarkerKind::kStep || (step_source_ && *step_source_ != marker.key)) {
    return;
  }
  step_source_ = marker.key;
  run_.steps.mark(marker.t_s, marker.value);
}

void SiteTrackBuilder::take_loss(const LossRecord& loss) {
  constexpr std::size_t kMostLosses = 64;
  const auto known = std::find_if(run_.losses.begin(), run_.losses.end(),
                                  [&](const auto& each) { return each.first == loss.what.text(); });
  if (known != run_.losses.end()) {
    known->second += loss.count;
  } else if (run_.losses.size() < kMostLosses) {
    run_.losses.emplace_back(loss.what.text(), loss.count);
  }
}

namespace {

// The last one that was taken by then; nullptr: there is none.
const Cell* cell_at(const Series& series, double t_s) {
  const std::vector<Cell>& cells = series.cells();
  const auto after = std::upper_bound(cells.begin(), cells.end(), t_s,
                                      [](double at, const Cell& cell) { return at < cell.t_s; });
  return after == cells.begin() ? nullptr : &*std::prev(after);
}

}  // namespace

std::optional<double> value_at(const Series& series, double t_s) {
  const Cell* const cell = cell_at(series, t_s);
  return cell == nullptr ? std::nullopt : std::optional(cell->mean_bytes());
}

std::optional<double> age_at(const Series& series, double t_s) {
  const Cell* const cell = cell_at(series, t_s);
  return cell == nullptr ? std::nullopt : std::optional(t_s - cell->t_s);
}

}  // namespace tidemark::tracker
