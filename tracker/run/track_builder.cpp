// SPDX-License-Identifier: Apache-2.0
#include "tracker/run/track_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace tidemark::tracker {

bool ShmFreshness::is_fresh(double t_s, std::uint64_t unheld_bytes,
                            std::optional<std::uint64_t> used_bytes) {
  const bool changes = used_bytes != used_bytes_;
  used_bytes_ = used_bytes;
  const bool repeats = fresh_s_ && unheld_bytes == unheld_bytes_;
  if (changes && repeats && t_s - *fresh_s_ < kLongestRepeatSeconds) {
    return false;
  }
  fresh_s_ = t_s;
  unheld_bytes_ = unheld_bytes;
  return true;
}

namespace {

constexpr double kClockNoiseS = 1e-3;

double number(const std::optional<std::uint64_t>& bytes) {
  return static_cast<double>(bytes.value_or(0));
}

void add(std::optional<double>& sum, const std::optional<double>& part) {
  if (part) {
    sum = sum.value_or(0.0) + *part;
  }
}

}  // namespace

std::optional<GpuTotals::Figures> GpuTotals::take(const Tick& tick) {
  if (tick.gpus.empty()) {
    return std::nullopt;
  }
  // All are read together. While the driver gives nothing new its last figures are repeated.
  const double read_s = tick.t_s - tick.gpus.front().age_s;
  if (tick.gpus.front().age_s > 0.0 && read_s <= read_s_ + kClockNoiseS) {
    return std::nullopt;
  }
  read_s_ = read_s;
  Figures figures;
  for (const GpuSample& gpu : tick.gpus) {
    if (gpu.used_bytes) {
      figures.devices_bytes = figures.devices_bytes.value_or(0.0) + number(gpu.used_bytes);
    }
    for (const GpuProcessUse& use : gpu.processes) {
      if (use.used_bytes) {
        figures.by_pid[use.pid] += number(use.used_bytes);
        used_.insert(gpu.index);
      }
    }
  }
  update_limit(tick);
  return figures;
}

void GpuTotals::update_limit(const Tick& tick) {
  const bool knows_users = !used_.empty();
  const std::size_t devices = knows_users ? used_.size() : tick.gpus.size();
  if (devices != 1) {
    limit_bytes_.reset();
    limit_source_.clear();
    return;
  }
  for (const GpuSample& gpu : tick.gpus) {
    if ((knows_users && !used_.contains(gpu.index)) || !gpu.total_bytes) {
      continue;
    }
    double own = knows_users ? 0.0 : number(gpu.used_bytes);
    for (const GpuProcessUse& use : gpu.processes) {
      own += number(use.used_bytes);
    }
    const double others = std::max(number(gpu.used_bytes) - own, 0.0);
    limit_bytes_ = std::max(number(gpu.total_bytes) - number(gpu.reserved_bytes) - others, 0.0);
    limit_source_ = gpu_label(gpu.index) + (others > 0.0 ? ", beside its other users" : "");
  }
}

void TorchTotals::take(const MarkerRecord& gauge) {
  if (gauge.value < 0) {
    return;
  }
  const bool is_allocated = gauge.name == kTorchAllocatedGauge;
  if (!is_allocated && gauge.name != kTorchReservedGauge) {
    return;
  }
  Memory& account = by_process_[gauge.key];
  (is_allocated ? account.allocated_bytes : account.reserved_bytes) =
      static_cast<double>(gauge.value);
  if (std::find(changed_.begin(), changed_.end(), gauge.key) == changed_.end()) {
    changed_.push_back(gauge.key);
  }
}

std::vector<ProcessKey> TorchTotals::take_changed() { return std::exchange(changed_, {}); }

TorchTotals::Memory TorchTotals::of(const ProcessKey& process) const {
  const auto account = by_process_.find(process);
  return account == by_process_.end() ? Memory{} : account->second;
}

TorchTotals::Memory TorchTotals::sum() const {
  Memory sum;
  for (const auto& [process, account] : by_process_) {
    add(sum.allocated_bytes, account.allocated_bytes);
    add(sum.reserved_bytes, account.reserved_bytes);
  }
  return sum;
}

namespace {

constexpr std::size_t kFewCells = 256;
constexpr std::uint64_t kFewestToJudge = 6;  // samples

bool is_important(Role role) { return role == Role::kTrainer || role == Role::kRank; }

// What verdicts may rest on is kept finely.
bool is_primary(Metric metric) {
  return metric == Metric::kFootprint || metric == Metric::kRss || metric == Metric::kPss ||
         metric == Metric::kGpu || metric == Metric::kGpuDevice;
}

void reset_curves(Track& track) {
  const bool is_fine = track.kind != TrackKind::kProcess || is_important(track.role);
  for (std::size_t i = 0; i < kMetricCount; ++i) {
    track.curves[i] =
        Series(is_fine && is_primary(static_cast<Metric>(i)) ? Series::kDefaultCells : kFewCells);
  }
}

std::size_t add_track(std::vector<Track>& tracks, TrackKind kind, Role role, double started_s) {
  Track& track = tracks.emplace_back();
  track.kind = kind;
  track.role = role;
  track.started_s = started_s;
  reset_curves(track);
  return tracks.size() - 1;
}

int place_of(TrackKind kind) {
  switch (kind) {
    case TrackKind::kTree:
      return 0;
    case TrackKind::kRole:
      return 1;
    case TrackKind::kProcess:
      return 2;
    case TrackKind::kShm:
      return 3;
  }
  return 4;
}

bool has_samples(const Track& track) {
  return std::any_of(track.curves.begin(), track.curves.end(),
                     [](const Series& series) { return !series.empty(); });
}

bool is_always_zero(const Track& track) {
  const std::vector<Cell>& cells = track.of(Metric::kFootprint).cells();
  return std::all_of(cells.begin(), cells.end(),
                     [](const Cell& cell) { return cell.max_bytes == 0.0; });
}

std::optional<RunEvent::Kind> kind_of(EventKind kind) {
  switch (kind) {
    case EventKind::kSpawn:
      return RunEvent::Kind::kSpawn;
    case EventKind::kExit:
      return RunEvent::Kind::kExit;
    case EventKind::kExec:
      return RunEvent::Kind::kExec;
    case EventKind::kOomKill:
      return RunEvent::Kind::kOomKill;
    case EventKind::kGap:
    case EventKind::kWarnGrowth:
    case EventKind::kReparent:
    case EventKind::kMark:
    case EventKind::kGpuLost:
    case EventKind::kGuard:
    case EventKind::kRefused:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> known(double value) {
  return std::isnan(value) ? std::nullopt : std::optional<double>(value);
}

}  // namespace

// The kernel keeps the highest resident size of a process: where that rose above both samples,
// there was a peak between them.
void TrackBuilder::Known::take_peak(const ProcessSample& sample) {
  unseen_bytes = 0.0;
  if (hwm_bytes && sample.hwm_bytes && sample.rss_bytes &&
      *sample.hwm_bytes > std::max(*hwm_bytes, *sample.rss_bytes)) {
    unseen_bytes = static_cast<double>(*sample.hwm_bytes - *sample.rss_bytes);
  }
  hwm_bytes = sample.hwm_bytes;
}

Status TrackBuilder::begin(const RunInfo& info) {
  time_is_steps_ = info.time_is_steps;
  roles_.fill(kNoTrack);
  if (info.limit_bytes) {
    run_.limit_bytes = static_cast<double>(*info.limit_bytes);
    run_.limit_source = info.limit_source;
  }
  return ok();
}

Status TrackBuilder::add(const Tick& tick) {
  now_s_ = tick.t_s;
  t_s_ = time_is_steps_ ? kUnknown : tick.t_s;
  step_ = time_is_steps_ ? tick.t_s : kUnknown;
  if (tick.step && !time_is_steps_) {
    step_ = static_cast<double>(tick_steps_.add_numbered(*tick.step));
  }
  for (const ProcessRecord& process : tick.new_processes) {
    take_process(process);
  }
  for (const EventRecord& event : tick.events) {
    take_event(event);
  }
  take_markers(tick, /*late=*/false);
  for (const LossRecord& loss : tick.losses) {
    take_loss(loss.what.text(), loss.count);
  }

  if (!tree_) {
    tree_ = add_track(run_.tracks, TrackKind::kTree, Role::kOther, now_s_);
  }
  // Peaks of several processes need not have come together, so the highest counts.
  double unseen_bytes = 0.0;
  std::array<double, kRoleCount> unseen_by_role{};
  for (const ProcessSample& sample : tick.processes) {
    Known& process = find_or_add(sample.key);
    process.take_peak(sample);
    double& of_role = unseen_by_role[static_cast<std::size_t>(process.role)];
    of_role = std::max(of_role, process.unseen_bytes);
    unseen_bytes = std::max(unseen_bytes, process.unseen_bytes);
  }
  add_group(*tree_, tick.tree, unseen_bytes);
  for (const RoleSample& role : tick.roles) {
    add_group(track_of_role(role.role), role.sum,
              unseen_by_role[static_cast<std::size_t>(role.role)]);
  }
  for (const ProcessSample& sample : tick.processes) {
    add_process(sample);
  }
  for (const MemoryAccount& account : tick.allocations.accounts) {
    const auto process = processes_.find(account.key);
    if (process != processes_.end() && process->second.track != kNoTrack) {
      run_.tracks[process->second.track].take_slack(static_cast<double>(account.slack_bytes));
    }
  }
  run_.interpreters.add(tick.heap);
  run_.ledgers.add(tick);
  add_gpus(tick);
  add_torch();
  if (tick.system && tick.system->dev_shm_unheld_bytes &&
      shm_freshness_.is_fresh(now_s_, *tick.system->dev_shm_unheld_bytes,
                              tick.system->dev_shm_bytes)) {
    if (!shm_) {
      shm_ = add_track(run_.tracks, TrackKind::kShm, Role::kOther, now_s_);
    }
    put(*shm_, Metric::kFootprint, tick.system->dev_shm_unheld_bytes);
  }
  take_markers(tick, /*late=*/true);
  begin_s_ = begin_s_.value_or(now_s_);
  return ok();
}

Status TrackBuilder::process_ended(const ProcessRecord& process) {
  if (const auto it = processes_.find(process.key); it != processes_.end()) {
    if (it->second.track != kNoTrack) {
      run_.tracks[it->second.track].exited_s = process.exited_s.value_or(now_s_);
    }
    processes_.erase(it);
  }
  torch_.forget(process.key);
  if (step_source_ == process.key) {
    step_source_.reset();
  }
  return ok();
}

Status TrackBuilder::end(double /*t_s*/) { return ok(); }

RunTracks TrackBuilder::tracks() const {
  RunTracks run = run_;
  finish(run);
  return run;
}

RunTracks TrackBuilder::take() {
  RunTracks run = std::exchange(run_, {});
  finish(run);
  return run;
}

TrackBuilder::Known& TrackBuilder::find_or_add(const ProcessKey& key) {
  const auto [it, is_new] = processes_.try_emplace(key);
  if (is_new) {  // its record comes later or never
    ProcessRecord unnamed;
    unnamed.key = key;
    unnamed.started_s = now_s_;
    it->second.track = track_for(unnamed);
  }
  return it->second;
}

void TrackBuilder::take_process(const ProcessRecord& process) {
  const auto [it, is_new] = processes_.try_emplace(process.key);
  it->second.role = process.role;
  it->second.rank = process.rank;
  if (it->second.track == kNoTrack) {
    it->second.track = track_for(process);
    return;
  }
  Track& track = run_.tracks[it->second.track];
  track.role = process.role;
  track.rank = process.rank;
  track.comm = process.comm;
  track.program = process.program();
  track.age_at_start_s = process.age_s;
  if (!has_samples(track)) {
    reset_curves(track);  // in the resolution of the new role
  }
}

std::size_t TrackBuilder::track_for(const ProcessRecord& process) {
  const std::size_t at = room_for_process(is_important(process.role));
  if (at == kNoTrack) {
    take_loss(loss_name(LossKind::kProcessesUntracked), 1);
    return kNoTrack;
  }
  Track track;
  track.kind = TrackKind::kProcess;
  track.key = process.key;
  track.role = process.role;
  track.rank = process.rank;
  track.comm = process.comm;
  track.program = process.program();
  track.started_s = process.started_s;
  track.age_at_start_s = process.age_s;
  reset_curves(track);
  run_.tracks[at] = std::move(track);
  return at;
}

// Compilers and other helpers come and go by the thousand: what ended before it could be judged
// makes room.
std::size_t TrackBuilder::room_for_process(bool is_important) {
  if (process_tracks_.size() < (is_important ? 2 * kMostProcesses : kMostProcesses)) {
    process_tracks_.push_back(add_track(run_.tracks, TrackKind::kProcess, Role::kOther, now_s_));
    return process_tracks_.back();
  }
  const auto spent =
      std::find_if(process_tracks_.begin(), process_tracks_.end(), [this](std::size_t i) {
        const Track& track = run_.tracks[i];
        return track.exited_s && track.of(Metric::kRss).samples() < kFewestToJudge;
      });
  if (spent == process_tracks_.end()) {
    return kNoTrack;
  }
  forget_curves(*spent);
  take_loss(loss_name(LossKind::kProcessesUntracked), 1);
  return *spent;
}

std::size_t TrackBuilder::track_of_role(Role role) {
  std::size_t& track = roles_[static_cast<std::size_t>(role)];
  if (track == kNoTrack) {
    track = add_track(run_.tracks, TrackKind::kRole, role, now_s_);
  }
  return track;
}

void TrackBuilder::forget_curves(std::size_t track) {
  reset_curves(run_.tracks[track]);
  std::erase_if(held_, [&](const Held& held) { return held.track == track; });
}

void TrackBuilder::take_event(const EventRecord& event) {
  const auto process = processes_.find(event.key);
  if (const auto kind = kind_of(event.kind)) {
    keep_event(
        {event.t_s, *kind, process == processes_.end() ? Role::kOther : process->second.role, {}});
  }
  if (event.kind == EventKind::kExec && process != processes_.end() &&
      process->second.track != kNoTrack) {
    forget_curves(process->second.track);  // the memory of another program
    run_.tracks[process->second.track].started_s = event.t_s;
    run_.tracks[process->second.track].age_at_start_s = 0.0;
  }
}

// A tick bears the time at which its memory was read. `late`: what was marked after that, while it
// looked on.
void TrackBuilder::take_markers(const Tick& tick, bool late) {
  for (const MarkerRecord& marker : tick.markers) {
    if ((marker.t_s > tick.t_s) == late) {
      take_marker(marker, tick);
    } else if (!late && marker.kind == MarkerKind::kStep && !time_is_steps_) {
      step_ = kUnknown;  // the step of this tick is one that its samples come before
    }
  }
}

void TrackBuilder::take_marker(const MarkerRecord& marker, const Tick& tick) {
  switch (marker.kind) {
    case MarkerKind::kStep:
      if (!time_is_steps_ && is_step_source(marker.key)) {
        clock_.mark(marker.t_s, marker.value);
        place_held_before_last_step();
      }
      return;
    case MarkerKind::kEpoch:
      if (!begin_s_ && marker.t_s == tick.t_s && tick.t_s > 0.0) {
        return;  // the epoch that a recording finds itself in did not begin there
      }
      epochs_.mark(
          marker.value,
          time_is_steps_
              ? Moment{std::nullopt, tick.t_s}
              : Moment{marker.t_s, known(clock_.is_running() ? clock_.last_step() : step_)});
      return;
    case MarkerKind::kPhaseBegin:
    case MarkerKind::kPhaseEnd: {
      const auto process = processes_.find(marker.key);
      keep_event({marker.t_s,
                  marker.kind == MarkerKind::kPhaseBegin ? RunEvent::Kind::kPhaseBegin
                                                         : RunEvent::Kind::kPhaseEnd,
                  process == processes_.end() ? Role::kOther : process->second.role, marker.name});
      return;
    }
    case MarkerKind::kGauge:
      torch_.take(marker);
      return;
  }
}

// One clock for all: that of the lowest rank, else of whoever marked first.
bool TrackBuilder::is_step_source(const ProcessKey& key) {
  if (step_source_ && *step_source_ != key) {
    const auto source = processes_.find(*step_source_);
    const auto other = processes_.find(key);
    const bool is_lower = source != processes_.end() && other != processes_.end() &&
                          source->second.rank && other->second.rank &&
                          *other->second.rank < *source->second.rank;
    if (!is_lower) {
      return false;
    }
  }
  step_source_ = key;
  return true;
}

void TrackBuilder::place_held_before_last_step() {
  while (!held_.empty() && held_.front().t_s < clock_.last_s()) {
    const Held& held = held_.front();
    run_.tracks[held.track]
        .of(held.metric)
        .add(held.t_s, clock_.place_before_last(held.t_s), held.bytes, held.unseen_bytes);
    held_.pop_front();
  }
}

void TrackBuilder::keep_event(RunEvent event) {
  if (run_.events.size() < kMostEvents) {
    run_.events.push_back(std::move(event));
  } else {
    ++run_.events_dropped;
  }
}

void TrackBuilder::take_loss(std::string_view what, std::uint64_t count) {
  constexpr std::size_t kMostNames = 64;
  auto it = losses_.find(what);
  if (it == losses_.end()) {
    it = losses_.try_emplace(losses_.size() < kMostNames ? std::string(what) : "other").first;
  }
  it->second += count;
}

void TrackBuilder::add_group(std::size_t track, const GroupSample& sum, double unseen_bytes) {
  // Only zombies are left. That they hold nothing is no fall of the floor.
  if (sum.processes == 0 || (sum.rss_bytes == 0 && sum.footprint_bytes.value_or(0) == 0 &&
                             sum.pss_bytes.value_or(0) == 0)) {
    return;
  }
  Track& into = run_.tracks[track];
  into.most_processes = std::max(into.most_processes, sum.processes);
  put(track, Metric::kFootprint, sum.footprint_bytes, unseen_bytes);
  if (sum.rss_bytes > 0) {
    put(track, Metric::kRss, static_cast<double>(sum.rss_bytes), unseen_bytes);
    put(track, Metric::kSwap, static_cast<double>(sum.swap_bytes));
  }
  put(track, Metric::kPss, sum.pss_bytes);
}

void TrackBuilder::add_process(const ProcessSample& sample) {
  Known& process = find_or_add(sample.key);
  if (process.track == kNoTrack || sample.state == 'Z' || sample.state == 'X') {
    return;
  }
  put(process.track, Metric::kFootprint, sample.footprint_bytes(), process.unseen_bytes);
  put(process.track, Metric::kRss, sample.rss_bytes, process.unseen_bytes);
  put(process.track, Metric::kRssFile, sample.rss_file_bytes);
  put(process.track, Metric::kRssShmem, sample.rss_shmem_bytes);
  put(process.track, Metric::kSwap, sample.swap_bytes);
  // A share that was read long ago is no sample of now.
  constexpr double kClockNoise = 1e-3;
  const double read_s = now_s_ - sample.pss_age_s.value_or(0.0);
  if (!sample.pss_age_s || read_s > process.pss_read_s + kClockNoise) {
    put(process.track, Metric::kPss, sample.pss_bytes);
    put(process.track, Metric::kUss, sample.uss_bytes);
    process.pss_read_s = read_s;
  }
}

void TrackBuilder::put(std::size_t track, Metric metric, double bytes, double unseen_bytes) {
  if (!clock_.is_running()) {
    run_.tracks[track].of(metric).add(t_s_, step_, bytes, unseen_bytes);
    return;
  }
  if (held_.size() >= kMostHeld) {  // a very long step
    const Held& oldest = held_.front();
    run_.tracks[oldest.track]
        .of(oldest.metric)
        .add(oldest.t_s, clock_.place_after_last(oldest.t_s), oldest.bytes, oldest.unseen_bytes);
    held_.pop_front();
  }
  held_.push_back({now_s_, track, metric, bytes, unseen_bytes});
}

void TrackBuilder::put(std::size_t track, Metric metric, const std::optional<std::uint64_t>& bytes,
                       double unseen_bytes) {
  if (bytes) {
    put(track, metric, static_cast<double>(*bytes), unseen_bytes);
  }
}

void TrackBuilder::finish(RunTracks& run) const {
  for (const Held& held : held_) {
    run.tracks[held.track]
        .of(held.metric)
        .add(held.t_s, clock_.place_after_last(held.t_s), held.bytes, held.unseen_bytes);
  }
  run.epoch_seconds = epochs_.seconds();
  run.epoch_steps = epochs_.steps();
  run.steps_at_start = clock_.steps_done_before(begin_s_.value_or(0.0));
  run.losses.assign(losses_.begin(), losses_.end());
  std::uint64_t dropped = 0;
  for (const Track& track : run.tracks) {
    for (const Series& series : track.curves) {
      dropped += series.dropped();
    }
  }
  if (dropped > 0) {
    run.losses.emplace_back(loss_name(LossKind::kSamplesDropped), dropped);
  }
  if (run.events_dropped > 0) {
    run.losses.emplace_back(loss_name(LossKind::kEventsDropped), run.events_dropped);
  }
  std::erase_if(run.tracks, [](const Track& track) {
    return !has_samples(track) || (track.kind == TrackKind::kShm && is_always_zero(track));
  });
  std::stable_sort(run.tracks.begin(), run.tracks.end(), [](const Track& a, const Track& b) {
    const int place_a = place_of(a.kind);
    const int place_b = place_of(b.kind);
    return place_a != place_b ? place_a < place_b : a.kind == TrackKind::kRole && a.role < b.role;
  });
}

void TrackBuilder::add_gpus(const Tick& tick) {
  const auto figures = gpu_.take(tick);
  if (!figures) {
    return;
  }
  run_.gpu_limit_bytes = gpu_.limit_bytes();
  run_.gpu_limit_source = gpu_.limit_source();
  if (figures->devices_bytes) {
    put(*tree_, Metric::kGpuDevice, *figures->devices_bytes);
  }
  const auto& by_pid = figures->by_pid;
  if (by_pid.empty()) {
    return;
  }
  double total = 0.0;
  std::array<std::optional<double>, kRoleCount> by_role{};
  for (const ProcessSample& sample : tick.processes) {
    const auto use = by_pid.find(sample.key.pid);
    if (use == by_pid.end()) {
      continue;
    }
    const Known& process = find_or_add(sample.key);
    if (process.track != kNoTrack) {
      put(process.track, Metric::kGpu, use->second);
    }
    auto& role = by_role[static_cast<std::size_t>(process.role)];
    role = role.value_or(0.0) + use->second;
    total += use->second;
  }
  put(*tree_, Metric::kGpu, total);
  for (std::size_t i = 0; i < by_role.size(); ++i) {
    if (by_role[i]) {
      put(track_of_role(static_cast<Role>(i)), Metric::kGpu, *by_role[i]);
    }
  }
}

void TrackBuilder::add_torch() {
  const auto put_memory = [this](std::size_t track, const TorchTotals::Memory& account) {
    if (account.allocated_bytes) {
      put(track, Metric::kTorchAllocated, *account.allocated_bytes);
    }
    if (account.reserved_bytes) {
      put(track, Metric::kTorchReserved, *account.reserved_bytes);
    }
  };
  const std::vector<ProcessKey> changed = torch_.take_changed();
  for (const ProcessKey& key : changed) {
    if (const std::size_t track = find_or_add(key).track; track != kNoTrack) {
      put_memory(track, torch_.of(key));
    }
  }
  if (!changed.empty()) {
    put_memory(*tree_, torch_.sum());
  }
}

}  // namespace tidemark::tracker
