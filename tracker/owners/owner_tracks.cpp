// SPDX-License-Identifier: Apache-2.0
#include "tracker/owners/owner_tracks.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tidemark::tracker {
namespace {

constexpr std::size_t kMostFailed = 4;

// Of files of strangers: a look at a heap never has more of them.
void bound(std::string& text) {
  if (text.size() > kMostOwnerTextBytes) {
    text.resize(kMostOwnerTextBytes);
  }
}

void bound(OwnerSample& sample) {
  bound(sample.shared_with);
  for (HeldObjects& held : sample.holds) {
    bound(held.type);
    bound(held.dtype);
    bound(held.device);
  }
}

std::vector<TypeSample> bounded(std::vector<TypeSample> types) {
  for (TypeSample& type : types) {
    bound(type.type);
  }
  return types;
}

std::vector<TensorSample> bounded(std::vector<TensorSample> tensors) {
  for (TensorSample& tensor : tensors) {
    bound(tensor.device);
    bound(tensor.dtype);
  }
  return tensors;
}

bool found_nothing(const HeapLook& look) { return look.objects == 0 && !look.problem.empty(); }

}  // namespace

std::optional<double> LookedProcess::footprint_growth() const {
  if (looks.empty() || !looks.front().footprint_bytes || !looks.back().footprint_bytes) {
    return std::nullopt;
  }
  return static_cast<double>(*looks.back().footprint_bytes) -
         static_cast<double>(*looks.front().footprint_bytes);
}

Status OwnerTrackBuilder::begin(const RunInfo& /*info*/) { return ok(); }

Status OwnerTrackBuilder::add(const Tick& tick) {
  run_.end_s = tick.t_s;
  for (const ProcessRecord& process : tick.new_processes) {
    ProcessLabel label{process.role, process.rank, process.comm, process.program()};
    if (const auto known = processes_.find(process.key); known != processes_.end()) {
      static_cast<ProcessLabel&>(run_.processes[known->second]) = label;
    }
    labels_[process.key] = std::move(label);
  }
  for (const MarkerRecord& marker : tick.markers) {
    take_marker(marker);
  }
  for (const OwnerRecord& owner : tick.heap.owners) {
    take_record(owner);
  }
  for (const HeapFacts::OfProcess& of : tick.heap.looks) {
    take_look(of);
  }
  for (const LossRecord& loss : tick.losses) {
    take_loss(loss);
  }
  for (const EventRecord& event : tick.events) {
    if (event.kind == EventKind::kOomKill) {
      run_.oom_kill_s = event.t_s;
    }
  }
  return ok();
}

Status OwnerTrackBuilder::process_ended(const ProcessRecord& process) {
  if (step_source_ == process.key) {
    step_source_.reset();
  }
  if (const auto known = processes_.find(process.key); known != processes_.end()) {
    run_.processes[known->second].exited_s = process.exited_s;
  } else {
    labels_.erase(process.key);
  }
  return ok();
}

Status OwnerTrackBuilder::end(double t_s) {
  run_.end_s = std::max(run_.end_s, t_s);
  return ok();
}

void OwnerTrackBuilder::take_marker(const MarkerRecord& marker) {
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

void OwnerTrackBuilder::take_record(const OwnerRecord& owner) {
  if (run_.owners.size() >= kMostOwners) {
    return;
  }
  LookedProcess* const process = process_of(owner.key);
  if (process == nullptr) {
    return;
  }
  const auto [it, is_new] = numbers_.try_emplace({owner.key, owner.owner}, run_.owners.size());
  if (!is_new) {
    return;
  }
  OwnerTrack& track = run_.owners.emplace_back();
  track.record = owner;
  bound(track.record.path);
  bound(track.record.type);
  for (PathStep& step : track.record.steps) {
    bound(step.label);
    bound(step.type);
  }
  process->owners.push_back(it->second);
}

// nullptr: there are too many.
LookedProcess* OwnerTrackBuilder::process_of(const ProcessKey& key) {
  const auto known = processes_.find(key);
  if (known != processes_.end()) {
    return &run_.processes[known->second];
  }
  if (run_.processes.size() >= kMostProcesses) {
    return nullptr;
  }
  processes_[key] = run_.processes.size();
  LookedProcess& process = run_.processes.emplace_back();
  process.key = key;
  if (const auto label = labels_.find(key); label != labels_.end()) {
    static_cast<ProcessLabel&>(process) = label->second;
  }
  return &process;
}

// A look that was taken after the last marker may have its step from the look itself.
double OwnerTrackBuilder::step_at(const HeapLook& look) const {
  const double step = run_.steps.at(look.t_s);
  return std::isnan(step) && look.step && run_.steps.empty() ? static_cast<double>(*look.step)
                                                             : step;
}

void OwnerTrackBuilder::take_look(const HeapFacts::OfProcess& of) {
  LookedProcess* const process = process_of(of.look.key);
  if (process == nullptr) {
    return;
  }
  if (found_nothing(of.look) || (!process->looks.empty() &&  //
                                 of.look.t_s < process->looks.back().t_s)) {
    process->failed.push_back(of.look);
    if (process->failed.size() > kMostFailed) {
      process->failed.erase(process->failed.begin());
    }
    return;
  }
  if (process->looks.size() >= kMostLooks) {
    thin_out(*process);
  }
  process->looks.push_back(of.look);
  if (process->looks.size() == 1) {
    process->first_types = bounded(of.types);
    process->first_tensors = bounded(of.tensors);
  }
  process->last_types = bounded(of.types);
  process->last_tensors = bounded(of.tensors);
  take_samples(of, *process);
}

void OwnerTrackBuilder::take_samples(const HeapFacts::OfProcess& of, const LookedProcess& process) {
  for (const OwnerSample& sample : of.owners) {
    const auto number = numbers_.find({of.look.key, sample.owner});
    if (number == numbers_.end()) {
      continue;
    }
    OwnerTrack& track = run_.owners[number->second];
    const std::size_t look = process.looks.size() - 1;
    if (!track.points.empty() && track.points.back().look == look) {
      continue;  // named twice
    }
    track.points.push_back({of.look.t_s, step_at(of.look), look,
                            static_cast<double>(sample.grown_bytes), sample.entries});
    track.last = sample;
    bound(track.last);
  }
}

// The first look stays: growth is counted from there.
void OwnerTrackBuilder::thin_out(LookedProcess& process) {
  std::vector<HeapLook> kept;
  for (std::size_t i = 0; i < process.looks.size(); i += 2) {
    kept.push_back(std::move(process.looks[i]));
  }
  process.looks_left_out += process.looks.size() - kept.size();
  process.looks = std::move(kept);
  for (const std::size_t owner : process.owners) {
    std::vector<OwnerPoint>& points = run_.owners[owner].points;
    std::erase_if(points, [](const OwnerPoint& point) { return point.look % 2 != 0; });
    for (OwnerPoint& point : points) {
      point.look /= 2;
    }
  }
}

void OwnerTrackBuilder::take_loss(const LossRecord& loss) {
  constexpr std::size_t kMostLosses = 64;
  const auto known = std::find_if(run_.losses.begin(), run_.losses.end(),
                                  [&](const auto& each) { return each.first == loss.what.text(); });
  if (known != run_.losses.end()) {
    known->second += loss.count;
  } else if (run_.losses.size() < kMostLosses) {
    run_.losses.emplace_back(loss.what.text(), loss.count);
  }
}

}  // namespace tidemark::tracker
