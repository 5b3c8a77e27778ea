// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/records.h"
#include "tests/support/sample_run.h"

namespace tidemark::tests {

inline constexpr std::uint64_t kOwnerMiB = std::uint64_t{1} << 20U;

// An owner made by hand: what it has and holds at each look, counted from 0. An owner without a
// sample was not among the largest.
struct MadeOwner {
  OwnerRecord record;
  std::function<std::optional<OwnerSample>(std::size_t look)> at;
};

// A run in which the heap of processes is looked at every twenty seconds, with a step each second.
class OwnerRun {
 public:
  double every_s = 20.0;
  bool with_steps = true;
  std::optional<std::int64_t> epoch_steps;  // length of an epoch
  std::uint64_t base_bytes = 100 * kOwnerMiB;
  // What the process grows by beside its owners.
  std::function<std::uint64_t(std::size_t look)> unowned = [](std::size_t) { return 0; };
  // Changes what a look says.
  std::function<void(HeapFacts::OfProcess&, std::size_t look)> adjust = [](auto&, std::size_t) {};

  void add_process(const ProcessRecord& process) { processes_.push_back(process); }

  MadeOwner& add(OwnerRecord record,
                 std::function<std::optional<OwnerSample>(std::size_t look)> at) {
    record.owner = static_cast<std::uint32_t>(owners_.size() + 1);
    owners_.push_back({std::move(record), std::move(at)});
    return owners_.back();
  }

  std::vector<Tick> ticks(std::size_t looks) const {
    std::vector<Tick> all;
    for (std::size_t look = 0; look < looks; ++look) {
      all.push_back(tick(look));
    }
    return all;
  }

 private:
  Tick tick(std::size_t look) const {
    Tick tick;
    tick.t_s = every_s * static_cast<double>(look);
    if (look == 0) {
      tick.new_processes = processes_;
      for (const MadeOwner& owner : owners_) {
        tick.heap.owners.push_back(owner.record);
      }
    }
    if (with_steps) {
      add_steps(tick, look);
    }
    for (const ProcessRecord& process : processes_) {
      tick.heap.looks.push_back(look_at(process.key, look, tick));
    }
    return tick;
  }

  void add_steps(Tick& tick, std::size_t look) const {
    const auto every = static_cast<std::int64_t>(every_s);
    const std::int64_t last = every * static_cast<std::int64_t>(look);
    for (std::int64_t step = look == 0 ? 0 : last - every + 1; step <= last; ++step) {
      const auto t_s = static_cast<double>(step);
      const ProcessKey key = processes_.front().key;
      tick.markers.push_back({t_s, key, MarkerKind::kStep, step, ""});
      if (epoch_steps && step % *epoch_steps == 0) {
        tick.markers.push_back({t_s, key, MarkerKind::kEpoch, step / *epoch_steps, ""});
      }
    }
    tick.step = last;
  }

  HeapFacts::OfProcess look_at(const ProcessKey& key, std::size_t number, const Tick& tick) const {
    HeapFacts::OfProcess of;
    of.look.key = key;
    of.look.t_s = tick.t_s;
    of.look.step = tick.step;
    of.look.reading = HeapReading::kFrozen;
    of.look.paused_s = 0.0012;
    of.look.took_s = 0.8;
    of.look.objects = 100'000;
    of.look.unread_bytes = 0;
    of.look.interpreter.python = "3.11.2";
    std::uint64_t grown = 0;
    for (const MadeOwner& owner : owners_) {
      if (owner.record.key != key) {
        continue;
      }
      if (auto sample = owner.at(number)) {
        sample->owner = owner.record.owner;
        grown += sample->grown_bytes;
        of.owners.push_back(std::move(*sample));
      }
    }
    of.look.new_bytes = grown;
    of.look.heap_bytes = base_bytes / 2 + grown;
    of.look.footprint_bytes = base_bytes + grown + unowned(number);
    adjust(of, number);
    return of;
  }

  std::vector<ProcessRecord> processes_;
  std::vector<MadeOwner> owners_;
};

inline OwnerRecord owner_record(std::string path, std::string type = "dict",
                                OwnerKind kind = OwnerKind::kContainer) {
  OwnerRecord owner;
  owner.key = trainer_record().key;
  owner.kind = kind;
  owner.path = std::move(path);
  owner.type = std::move(type);
  return owner;
}

// So many entries of a MiB at each look, above those of the first.
inline std::function<std::optional<OwnerSample>(std::size_t)> entries_at(
    std::function<std::uint64_t(std::size_t)> entries) {
  return [entries](std::size_t look) {
    OwnerSample sample;
    sample.entries = entries(look);
    sample.grown_bytes = (entries(look) - entries(0)) * kOwnerMiB;
    sample.grown_bytes_alone = sample.grown_bytes;
    sample.retained_bytes = entries(look) * kOwnerMiB;
    if (sample.grown_bytes > 0) {
      HeldObjects tensors;
      tensors.type = "torch.Tensor";
      tensors.dtype = "float32";
      tensors.shape = {256, 1024};
      tensors.device = "cpu";
      tensors.count = entries(look) - entries(0);
      tensors.bytes = sample.grown_bytes;
      sample.holds = {tensors};
    }
    return std::optional(sample);
  };
}

// Something that holds as much at each look.
inline std::function<std::optional<OwnerSample>(std::size_t)> constant_bytes(std::uint64_t bytes) {
  return [bytes](std::size_t) {
    OwnerSample sample;
    sample.reached_bytes = bytes;
    return std::optional(sample);
  };
}

// The trainer with a collator that keeps a MiB at each step, and what is large and does not grow.
inline OwnerRun leaking_collator() {
  OwnerRun run;
  run.add_process(trainer_record());
  OwnerRecord cache = owner_record("__main__.collator.cache");
  cache.steps = {{"module __main__", "module"},
                 {"collator", "VisionCollator"},
                 {".cache", "dict"},
                 {"[*]", "torch.Tensor"}};
  run.add(cache, entries_at([](std::size_t look) { return 1'164 + 20 * look; }));
  run.add(owner_record("__main__.dataset", "Dataset", OwnerKind::kName),
          constant_bytes(210 * kOwnerMiB));
  run.add(owner_record("__main__.optimizer.state", "defaultdict", OwnerKind::kName),
          constant_bytes(8 * kOwnerMiB));
  return run;
}

}  // namespace tidemark::tests
