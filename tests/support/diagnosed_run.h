// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/diagnosis.h"
#include "tests/support/owner_run.h"
#include "tests/support/site_run.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::tests {

// A job that was watched for two minutes, made by hand: a tick and ten steps a second, the tracer
// in it, and three looks at its objects. What a test changes, it changes before built().
class DiagnosedRun {
 public:
  DiagnosedRun() {
    sites.with_steps = true;
    sites.add_process(trainer_record());
    const std::uint32_t stack =
        sites.add_python("stack", "/usr/lib/python3/dist-packages/torch/functional.py", 9);
    const std::uint32_t collate = sites.add_python("collate", "/home/me/train.py", 41);
    const std::uint32_t main = sites.add_python("<module>", "/home/me/train.py", 90);
    leak = sites.add_site(trainer_record().key, {stack, collate, main}, rising(kSiteMiB));
    looks.every_s = 50.0;
    looks.with_steps = false;
    looks.add_process(trainer_record());
  }

  // Holds the leak: an entry of a MiB each second.
  void add_cache(std::string path = "__main__.collator.cache", std::string type = "dict") {
    const std::string name = path.substr(path.rfind('.') + 1);
    OwnerRecord record = owner_record(std::move(path), std::move(type));
    record.steps = {{"module __main__", "module"}, {"." + name, record.type}};
    looks.add(std::move(record), [this](std::size_t look) {
      auto sample = entries_at([](std::size_t n) { return 100 + 50 * n; })(look);
      if (sample->grown_bytes > 0 && leak != 0) {
        sample->sites = {{leak, sample->grown_bytes}};
      }
      return sample;
    });
  }
  void add_data_set(std::uint64_t samples) {
    OwnerRecord record = owner_record("__main__.dataset", "list", OwnerKind::kName);
    record.steps = {{"module __main__", "module"}, {"dataset", "list"}};
    looks.add(std::move(record), [samples](std::size_t look) {
      auto sample = constant_bytes(210 * kOwnerMiB)(look);
      sample->entries = samples;
      return sample;
    });
  }

  std::vector<Tick> ticks() const {
    constexpr std::size_t kSeconds = 121;
    std::vector<Tick> all = sites.ticks(kSeconds);
    const std::vector<Tick> looked = looks.ticks(count_of_looks);
    for (std::size_t look = 0; look < looked.size(); ++look) {
      Tick& tick = all[look * 50];
      tick.heap = looked[look].heap;
      for (HeapFacts::OfProcess& of : tick.heap.looks) {
        of.look.step = tick.step;
      }
    }
    for (Tick& tick : all) {
      GroupSample& tree = tick.tree;
      for (ProcessSample& sample : tick.processes) {
        ++tree.processes;
        const auto more = static_cast<std::uint64_t>(tick.t_s) * file_bytes_per_s;
        sample.rss_file_bytes = sample.rss_file_bytes.value_or(0) + more;
        sample.rss_bytes = sample.rss_bytes.value_or(0) + more;
        tree.rss_bytes += sample.rss_bytes.value_or(0);
        tree.footprint_bytes = tree.footprint_bytes.value_or(0) + *sample.footprint_bytes();
      }
      if (tick.t_s == 0.0) {
        tick.events.insert(tick.events.end(), events.begin(), events.end());
      }
    }
    for (const MemoryLedger& ledger : ledgers) {
      all[static_cast<std::size_t>(ledger.t_s)].ledgers.push_back(ledger);
    }
    if (!with_sites) {
      for (Tick& tick : all) {
        tick.allocations = {};
      }
    }
    return all;
  }

  // With what comes behind the two minutes.
  report::Diagnosis built(const std::vector<Tick>& later = {}) {
    RunInfo info;
    info.limit_bytes = 1024 * kOwnerMiB;
    info.limit_source = "cgroup v2 /job";
    builder_ = std::make_unique<report::DiagnosisBuilder>();
    traced_ = std::make_unique<tracker::SiteTrackBuilder>();
    (void)builder_->begin(info);
    std::vector<Tick> all = ticks();
    all.insert(all.end(), later.begin(), later.end());
    for (const Tick& tick : all) {
      (void)builder_->add(tick);
      (void)traced_->add(tick);
    }
    report::Diagnosis diagnosis =
        builder_->diagnosis(report::make_report(traced_->sites(), judge, 10), judge);
    diagnosis.target.running = "--pid 101";
    return diagnosis;
  }

  SiteRun sites;
  OwnerRun looks;
  tracker::JudgeOptions judge;
  std::vector<EventRecord> events;    // of the first tick
  std::vector<MemoryLedger> ledgers;  // each in the tick of its time
  bool with_sites = true;
  std::size_t count_of_looks = 3;
  std::uint64_t file_bytes_per_s = 0;  // pages of files that become resident
  std::uint32_t leak = 0;              // the site that grows

 private:
  std::unique_ptr<report::DiagnosisBuilder> builder_;
  std::unique_ptr<tracker::SiteTrackBuilder> traced_;
};

}  // namespace tidemark::tests
