// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "trainer_harness/plan.h"

namespace tidemark::harness {

// Where in our source a leak is allocated, and where it is kept. The second is unknown where
// nothing keeps it: the pointer is lost.
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

// Passes a value on and notes the line of the call, for the truth about a leak: the expression
// that makes the value stands on that line.
template <typename Value>
Value noted(std::optional<std::string>& line, Value value,
            std::source_location where = std::source_location::current()) {
  if (!line) {
    line = source_line(where.file_name(), where.line());
  }
  return value;
}

struct TruthProcess {
  pid_t pid = 0;
  std::string_view role;  // in the words of docs/roles.md
};

// What happened besides the plan.
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

// One JSON document, see docs/harness.md. Of a complete run it tells what the steps that were taken
// did to memory; before, what the rest of the plan will do.
std::string truth_json(const TrainerOptions& options, const Plan& plan, const RunFacts& facts);

}  // namespace tidemark::harness
