// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "common/recording_sink.h"
#include "report/rule_out_text.h"

namespace tidemark::report {

// What a run has of interventions: while it is watched, and from a file.
class InterventionRun final : public RecordingSink {
 public:
  Status begin(const RunInfo& info) override {
    report_.command = info.command;
    return ok();
  }
  Status add(const Tick& tick) override {
    for (const ProcessRecord& process : tick.new_processes) {
      programs_[process.key] = process.program();
    }
    for (const ProcessSample& sample : tick.processes) {
      if (const auto footprint = sample.footprint_bytes()) {
        footprints_[sample.key] = *footprint;
      }
    }
    for (const InterventionRecord& record : tick.interventions) {
      process_of(record.key).interventions.push_back(record);
    }
    return ok();
  }
  Status process_ended(const ProcessRecord& /*process*/) override { return ok(); }
  Status end(double /*t_s*/) override { return ok(); }

  RuleOutReport report() const {
    RuleOutReport report = report_;
    for (RuleOutReport::Process& process : report.processes) {
      if (const auto program = programs_.find(process.key); program != programs_.end()) {
        process.program = program->second;
      }
      if (const auto last = footprints_.find(process.key); last != footprints_.end()) {
        process.footprint_bytes = last->second;
      }
    }
    return report;
  }

 private:
  RuleOutReport::Process& process_of(const ProcessKey& key) {
    auto& all = report_.processes;
    const auto known =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.key == key; });
    if (known != all.end()) {
      return *known;
    }
    all.emplace_back().key = key;
    return all.back();
  }

  RuleOutReport report_;
  std::map<ProcessKey, std::string> programs_;
  std::map<ProcessKey, std::uint64_t> footprints_;
};

}  // namespace tidemark::report
