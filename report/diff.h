// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "common/units.h"
#include "tracker/run/judged_run.h"

namespace tidemark::report {

struct DiffOptions {
  std::string a;  // any recording that we read
  std::string b;
  bool json = false;
  tracker::JudgeOptions judge;  // of both; without a metric: the best that both have
};

// `tidemark diff`: two recordings side by side, before and after a change. Exit code 0 whatever the
// answer is, 3 when one of them cannot be read.
int run_diff(const DiffOptions& options);

}  // namespace tidemark::report
