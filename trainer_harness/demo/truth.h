// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "tracker/curve/series_verdict.h"

namespace tidemark::demo {

// What the harness wrote down about its own run (truth.json); strings are raw bytes.
struct DemoTruth {
  bool complete = false;  // the run came to its end
  tracker::Verdict verdict = tracker::Verdict::kStable;
  std::optional<double> leak_bytes_per_step;
  std::optional<double> plateau_step;         // where the warm-up ends
  std::optional<double> warmup_growth_bytes;  // from its start to its end
  bool is_replay = false;                     // the curve of a recorded job
  std::string allocating_line;  // "trainer_harness/collator.cpp:42"; empty: nothing leaks
  std::string where;            // "process", "role", "shm"; empty: not said
  std::optional<pid_t> trainer_pid;
};

// The file is one of somebody else's: whatever it holds, this is a value or an error.
Result<DemoTruth> parse_demo_truth(std::string_view text);
Result<DemoTruth> read_demo_truth(const std::string& path);

}  // namespace tidemark::demo
