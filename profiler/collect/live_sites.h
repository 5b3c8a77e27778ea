// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/records.h"
#include "profiler/collect/collector_thread.h"

namespace tidemark::collect {

// The call stacks of a run that somebody else profiles at the same time: looks for the tracer in
// the processes of each tick, and follows its files without touching them.
class LiveSites {
 public:
  // `start_ns`: CLOCK_MONOTONIC at t = 0 of the run.
  LiveSites(std::int64_t start_ns, std::int64_t interval_ns)
      : start_ns_(start_ns), interval_ns_(interval_ns) {}

  // Adds what is known by now.
  void complete(Tick& tick);
  // Whether a profile that it followed has ended since the last call.
  bool take_end() { return std::exchange(has_ended_, false); }

 private:
  void look_for_a_tracer(const Tick& tick);

  const std::int64_t start_ns_;
  const std::int64_t interval_ns_;
  double next_search_s_ = 0.0;
  std::string directory_;
  std::unique_ptr<ProfileWorker> worker_;
  bool has_ended_ = false;
};

}  // namespace tidemark::collect
