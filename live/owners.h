// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/result.h"
#include "live/heap_looks.h"
#include "live/look_plan.h"
#include "live/watch_options.h"
#include "live/watch_system.h"
#include "profiler/heap/heap_watch.h"
#include "tracker/run/judged_run.h"

namespace tidemark::live {

struct OwnersOptions {
  std::string input;  // a run file with looks; empty: look at a job
  WatchOptions watch;
  heap::HeapOptions heap;
  std::uint64_t looks = 3;
  LookEvery every;
  bool all = false;  // every process of the tree; and all that is known in the report
  std::uint64_t top = 10;
  bool types = false;
  bool tensors = false;
  bool plain = false;
  HeapExportFiles exports;
  tracker::JudgeOptions judge;
};

// "20s", "50steps".
Result<LookEvery> parse_look_every(std::string_view text);
// "10s", "1GiB", "10s,1GiB": how long a look may take, and how much memory it may have.
Status parse_look_budget(std::string_view text, heap::HeapOptions& options);
// "auto", "always", "never".
Result<heap::FrozenUse> parse_frozen_use(std::string_view text);

// `tidemark owners`: which objects hold the memory and its growth. Around a command its status is
// passed on. `system`, `make_look`: nullptr for this machine.
int run_owners(const OwnersOptions& options, WatchSystem* system = nullptr,
               MakeLook make_look = nullptr);

}  // namespace tidemark::live
