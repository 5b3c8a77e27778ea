// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tracker/compare/owner_diff.h"
#include "tracker/compare/run_diff.h"
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

// What is printed about a recording beside its numbers.
struct DiffInput {
  std::string file;
  std::vector<std::pair<std::string, std::uint64_t>> losses;
};

// One sentence with the answer, then both runs in columns.
// `owners`: of two recordings with looks at the heap.
std::string diff_text(const tracker::RunDiff& diff, const DiffInput& a, const DiffInput& b,
                      const std::vector<tracker::OwnerDiff>& owners = {});
// One object, see docs/output.md.
std::string diff_json(const tracker::RunDiff& diff, const DiffInput& a, const DiffInput& b,
                      const std::vector<tracker::OwnerDiff>& owners = {});

}  // namespace tidemark::report
