// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/recording_sink.h"

namespace tidemark::tests {

// Keeps a whole run, and the order of the calls: "b" begin, "t" tick, "p" process ended, "e" end.
class MemorySink final : public RecordingSink {
 public:
  Status begin(const RunInfo& run_info) override {
    info = run_info;
    calls += 'b';
    return ok();
  }
  Status add(const Tick& tick) override {
    if (fail_at_tick == ticks.size() + 1) {
      return Error{Errc::kNoSpace, "the sink is full"};
    }
    ticks.push_back(tick);
    calls += 't';
    return ok();
  }
  Status process_ended(const ProcessRecord& process) override {
    ended.push_back(process);
    calls += 'p';
    return ok();
  }
  Status end(double t_s) override {
    end_s = t_s;
    calls += 'e';
    return ok();
  }

  RunInfo info;
  std::vector<Tick> ticks;
  std::vector<ProcessRecord> ended;
  std::optional<double> end_s;
  std::string calls;
  std::size_t fail_at_tick = 0;  // 0: never
};

}  // namespace tidemark::tests
