// SPDX-License-Identifier: Apache-2.0
#include "trainer_harness/demo/grade.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "common/text.h"
#include "report/chart_text.h"
#include "report/track_words.h"

namespace tidemark::demo {
namespace {

using tracker::RunVerdict;
using tracker::TrackKind;
using tracker::Verdict;

constexpr double kRateTolerance = 0.10;
constexpr double kGrowthTolerance = 0.05;
constexpr double kPlateauTolerance = 10;  // steps
constexpr std::size_t kOutlineColumns = 32;

// Whose growth it is: the process or segment behind the curve that gave the answer.
const tracker::Track& culprit(const tracker::JudgedRun& result) {
  const RunVerdict& verdict = *result.verdict;
  const tracker::TrackVerdict& reading =
      verdict.carrier ? verdict.tracks[*verdict.carrier] : verdict.answer();
  return result.run.tracks[reading.track];
}

bool is_found_there(const DemoTruth& truth, const tracker::Track& found) {
  if (truth.where == track_kind_name(TrackKind::kShm)) {
    return found.kind == TrackKind::kShm;
  }
  if (truth.where == track_kind_name(TrackKind::kProcess) && truth.trainer_pid) {
    return found.kind == TrackKind::kProcess && found.key.pid == *truth.trainer_pid;
  }
  return true;
}

std::string problem_with_rate(const DemoGrade& grade) {
  if (!grade.true_bytes_per_step) {
    return "";
  }
  if (!grade.measured_bytes_per_step) {
    return "no rate per step was measured";
  }
  const double off = *grade.measured_bytes_per_step / *grade.true_bytes_per_step - 1.0;
  return std::fabs(off) <= kRateTolerance
             ? ""
             : fmt::format("the rate is off by {:+.0f} %", 100.0 * off);
}

// Recorded jobs have a plateau that is a fact; the others' is where the harness stops to fill.
std::string problem_with_warmup(const DemoGrade& grade) {
  if (!grade.true_plateau_step || !grade.true_growth_bytes) {
    return "";
  }
  if (!grade.measured_plateau_step || !grade.measured_growth_bytes) {
    return "no end of the warm-up was found";
  }
  if (std::fabs(*grade.measured_plateau_step - *grade.true_plateau_step) > kPlateauTolerance) {
    return fmt::format("the warm-up ends at step {:.0f}, not {:.0f}", *grade.measured_plateau_step,
                       *grade.true_plateau_step);
  }
  const double off = *grade.measured_growth_bytes / *grade.true_growth_bytes - 1.0;
  return std::fabs(off) <= kGrowthTolerance
             ? ""
             : fmt::format("the growth of the warm-up is off by {:+.0f} %", 100.0 * off);
}

// Segments of shared memory grow without a stack that does.
std::string problem_with_line(const DemoGrade& grade, const DemoTruth& truth) {
  const bool wanted = truth.where != track_kind_name(TrackKind::kShm) && !grade.true_line.empty() &&
                      grade.found_line;
  if (!wanted || basename_of(*grade.found_line) == basename_of(grade.true_line)) {
    return "";
  }
  return grade.found_line->empty() ? "no stack was found that grows"
                                   : "the stack that grows most is another one";
}

std::string problem_with(const DemoGrade& grade, const DemoTruth& truth,
                         const tracker::JudgedRun& result) {
  if (!result.verdict) {
    return "nothing could be judged";
  }
  if (grade.verdict != truth.verdict) {
    return report::answer_text(result);
  }
  if (truth.verdict == Verdict::kWarmup && truth.is_replay) {
    return problem_with_warmup(grade);
  }
  if (truth.verdict != Verdict::kLeak) {
    return "";
  }
  if (const tracker::Track& found = culprit(result); !is_found_there(truth, found)) {
    return fmt::format("the leak was looked for in the wrong place: {}", report::who_text(found));
  }
  const std::string rate = problem_with_rate(grade);
  return rate.empty() ? problem_with_line(grade, truth) : rate;
}

}  // namespace

DemoGrade grade_demo(std::string scenario, const DemoTruth& truth, const tracker::JudgedRun& result,
                     std::optional<std::string> found_line) {
  DemoGrade grade;
  grade.scenario = std::move(scenario);
  grade.truth = truth.verdict;
  grade.true_bytes_per_step = truth.leak_bytes_per_step;
  grade.true_plateau_step = truth.plateau_step;
  grade.true_growth_bytes = truth.warmup_growth_bytes;
  grade.true_line = truth.allocating_line;
  grade.found_line = std::move(found_line);
  if (result.verdict) {
    const tracker::TrackVerdict& answer = result.verdict->answer();
    grade.verdict = result.verdict->verdict;
    for (const tracker::Advice& advice : result.verdict->advice) {
      grade.advice.push_back(advice.id);
    }
    grade.outline = report::sparkline_values(result.run.tracks[answer.track].of(answer.metric),
                                             kOutlineColumns);
    if (const auto* leak = answer.series.find(tracker::PatternKind::kLeak)) {
      grade.measured_bytes_per_step = leak->rate.bytes_per_step;
    }
    if (const auto* warmup = answer.series.find(tracker::PatternKind::kWarmup)) {
      grade.measured_plateau_step = warmup->to.step;
      grade.measured_growth_bytes = warmup->growth_bytes;
    }
  }
  grade.problem = problem_with(grade, truth, result);
  return grade;
}

DemoGrade failed_demo(std::string scenario, std::string problem) {
  DemoGrade grade;
  grade.scenario = std::move(scenario);
  grade.problem = std::move(problem);
  return grade;
}

}  // namespace tidemark::demo
