// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/records.h"
#include "common/result.h"

namespace tidemark {

// Takes a run, in the order of time: begin() once, then ticks, then end() once. The run file's
// writer is one; so is whatever a reader or an importer feeds. An error ends the run early.
class RecordingSink {
 public:
  virtual ~RecordingSink() = default;
  virtual Status begin(const RunInfo& info) = 0;
  virtual Status add(const Tick& tick) = 0;
  // A process that has ended: `exited_s` and, where known, `exit_status` are set.
  virtual Status process_ended(const ProcessRecord& process) = 0;
  virtual Status end(double t_s) = 0;
};

// Passes all of a run on to two others, which outlive it.
class TwoSinks final : public RecordingSink {
 public:
  TwoSinks(RecordingSink& first, RecordingSink& second) : first_(first), second_(second) {}

  Status begin(const RunInfo& info) override {
    TIDEMARK_TRY(first_.begin(info));
    return second_.begin(info);
  }
  Status add(const Tick& tick) override {
    TIDEMARK_TRY(first_.add(tick));
    return second_.add(tick);
  }
  Status process_ended(const ProcessRecord& process) override {
    TIDEMARK_TRY(first_.process_ended(process));
    return second_.process_ended(process);
  }
  Status end(double t_s) override {
    TIDEMARK_TRY(first_.end(t_s));
    return second_.end(t_s);
  }

 private:
  RecordingSink& first_;
  RecordingSink& second_;
};

}  // namespace tidemark
