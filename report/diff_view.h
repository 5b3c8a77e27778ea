// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tracker/compare/run_diff.h"

namespace tidemark::report {

// What the views say about a recording beside its numbers.
struct DiffInput {
  std::string file;
  std::vector<std::pair<std::string, std::uint64_t>> losses;
};

// One sentence with the answer, then both runs in columns.
std::string diff_text(const tracker::RunDiff& diff, const DiffInput& a, const DiffInput& b);
// One object, see docs/output.md.
std::string diff_json(const tracker::RunDiff& diff, const DiffInput& a, const DiffInput& b);

}  // namespace tidemark::report
