// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/recording_sink.h"

namespace tidemark::report {

// Masks the secrets of command lines that other tools logged as they were. `next` outlives it.
class RedactingSink final : public RecordingSink {
 public:
  explicit RedactingSink(RecordingSink& next) : next_(next) {}

  Status begin(const RunInfo& info) override;
  Status add(const Tick& tick) override;
  Status process_ended(const ProcessRecord& process) override;
  Status end(double t_s) override { return next_.end(t_s); }

 private:
  RecordingSink& next_;
};

}  // namespace tidemark::report
