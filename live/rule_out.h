// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "live/interventions.h"
#include "live/watch_options.h"
#include "live/watch_system.h"

namespace tidemark::live {

struct RuleOutOptions {
  std::string input;  // a run file with interventions; empty: intervene in a process
  WatchOptions watch;
  InterventionOptions interventions;
  bool dry_run = false;
  bool plain = false;
};

// "gc,trim": only these.
Result<collect::InterventionChoice> parse_interventions(std::string_view text);

// `tidemark rule-out`: what the memory of a process is not. `system`: nullptr for this machine.
int run_rule_out(const RuleOutOptions& options, WatchSystem* system = nullptr);

}  // namespace tidemark::live
