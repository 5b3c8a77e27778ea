// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer_harness/plan.h"

namespace tidemark::harness {

// Source lines of a leak: where it is allocated, and where it is retained. The second is unknown if
// the pointer is lost.
struct LeakLines {
  std::optional<std::string> allocating;
  std::optional<std::string> retaining;

  bool operator==(const LeakLines&) const = default;
};

// "trainer_harness/collator.cpp:42"
inline std::string source_line(std::string_view file, unsigned line) {
  const std::size_t at = file.rfind("trainer_harness/");
  return std::string(at == std::string_view::npos ? file : file.substr(at)) + ":" +
         std::to_string(line);
}

// Returns `value` and notes the line of the call. The expression that allocates or retains must be
// on that line. (clang 14 has no std::source_location.)
template <typename Value>
Value noted(std::optional<std::string>& line, Value value, const char* file = __builtin_FILE(),
            unsigned number = __builtin_LINE()) {
  if (!line) {
    line = source_line(file, number);
  }
  return value;
}

struct TruthProcess {
  pid_t pid = 0;
  std::string_view role;  // as in docs/roles.md
};

// What is known only while the run goes on.
struct RunFacts {
  bool complete = false;
  std::uint64_t first_step = 1;  // the one after the checkpoint that was resumed
  std::uint64_t steps_done = 0;
  std::optional<double> seconds;           // of all steps
  std::optional<double> seconds_per_step;  // pauses included; unknown: as planned
  LeakLines lines;
  std::vector<TruthProcess> processes;
  std::optional<pid_t> wrapper_pid;
};

// How long a step takes on average when everything goes as planned.
double planned_seconds_per_step(const Plan& plan);

// One JSON document, see docs/harness.md. For a complete run it describes the steps that were
// taken, before that the plan.
std::string truth_json(const TrainerOptions& options, const Plan& plan, const RunFacts& facts);

}  // namespace tidemark::harness
