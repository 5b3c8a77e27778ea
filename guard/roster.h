// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "common/records.h"
#include "monitor/sampler.h"

namespace tidemark::guard {

// Who is who for the guard.
struct Roster {
  // Who gets the signal: the trainer or all ranks; where nobody was recognised, the largest process
  // that is neither a wrapper nor a worker.
  std::vector<ProcessKey> trainers;
  std::vector<ProcessKey> members;     // that are alive
  std::vector<ProcessSample> largest;  // the same, by footprint
  std::string who;                     // the trainers, for people
  bool is_recognised = false;          // they are trainers, and not just large
};

Roster make_roster(const monitor::Sampler& sampler, const Tick& tick);

}  // namespace tidemark::guard
