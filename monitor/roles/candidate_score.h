// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "monitor/roles/finder.h"
#include "monitor/roles/process_evidence.h"
#include "monitor/roles/roles.h"

namespace tidemark::monitor {

struct WorkerCounts {
  std::size_t compile_workers = 0;
  std::size_t dataloader_workers = 0;
  std::size_t named = 0;  // of both: recognised by a name, not by a guess
};

// What the evidence says about one process.
struct Assessment {
  Confidence confidence = Confidence::kWeak;
  int score = 0;                     // orders candidates of the same confidence
  std::vector<std::string> reasons;  // the strongest first
};
Assessment assess(const ProcessEvidence& evidence, const RoleAssignment& role,
                  const WorkerCounts& workers);

// Small scripts and programs without any sign of training are not even weak candidates.
bool is_worth_showing(const ProcessEvidence& evidence, Confidence confidence);

}  // namespace tidemark::monitor
