// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracker/run/judged_run.h"
#include "trainer_harness/demo/truth.h"

namespace tidemark::demo {

// Truth and verdict of one scenario side by side.
struct DemoGrade {
  std::string scenario;
  std::optional<tracker::Verdict> truth;    // nullopt: the run failed, `problem` says how
  std::optional<tracker::Verdict> verdict;  // nullopt: nothing could be judged
  std::optional<double> true_bytes_per_step;
  std::optional<double> measured_bytes_per_step;
  std::optional<double> true_plateau_step;  // of a warm-up
  std::optional<double> measured_plateau_step;
  std::optional<double> true_growth_bytes;  // up to there
  std::optional<double> measured_growth_bytes;
  std::string true_line;                  // raw bytes; empty: nothing leaks
  std::optional<std::string> found_line;  // empty: none grows; nullopt: nobody looked
  std::vector<double> outline;            // of the curve that gave the answer, see outline.h
  std::vector<std::string_view> advice;   // ids of the causes that were named
  std::string problem;                    // a sentence; empty: all of it is right

  bool has_run() const { return truth.has_value(); }
  bool is_right() const { return has_run() && problem.empty(); }
};

// Right: the verdict is that of the truth; a leak is found in the trainer (or in the shared memory)
// where it is, at a rate within 10 % of the true one, and its line is the true one where somebody
// looked for it; the warm-up of a recorded job ends within 10 steps of the true one, with a growth
// within 5 %. `found_line`: of the call stack that grows most; empty: the job was traced and
// none does; nullopt: it was not traced.
DemoGrade grade_demo(std::string scenario, const DemoTruth& truth, const tracker::JudgedRun& result,
                     std::optional<std::string> found_line = std::nullopt);
// Of a scenario that could not be watched to its end.
DemoGrade failed_demo(std::string scenario, std::string problem);

}  // namespace tidemark::demo
