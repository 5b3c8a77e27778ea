// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "check/result.h"
#include "tests/support/site_run.h"
#include "tests/unit/report/sample_verdict.h"

// Results of checks as they might come, for the outputs.
namespace tidemark::tests {

inline tracker::BudgetRow growth_row(tracker::BudgetState state) {
  tracker::BudgetRow row;
  row.kind = tracker::BudgetKind::kGrowth;
  row.state = state;
  row.unit = tracker::BudgetUnit::kBytesPerStep;
  row.measured = 2 * kMiBf;
  row.low = 1.9 * kMiBf;
  row.high = 2.1 * kMiBf;
  row.limit = kMiBf;
  return row;
}

inline tracker::BudgetRow peak_row(tracker::BudgetState state) {
  tracker::BudgetRow row;
  row.kind = tracker::BudgetKind::kPeak;
  row.state = state;
  row.measured = 3 * kGiBf;
  row.limit = 4 * kGiBf;
  return row;
}

// A trainer that leaks 1 MiB a step in `function` of `file`, a tick a second and ten steps in it.
inline SiteRun traced_trainer(const std::string& function, const std::string& file) {
  SiteRun run;
  run.add_process(trainer_record());
  run.with_steps = true;
  const auto allocator = run.add_frame("malloc", "", {}, "/lib/libc.so.6");
  const auto leaking = run.add_frame(function, file, 42);
  const auto main = run.add_frame("main", "/src/main.cpp", 7);
  run.add_site(trainer_record().key, {allocator, leaking, main}, [](double t_s) {
    return static_cast<std::uint64_t>(t_s * 10.0) * kSiteMiB + kSiteMiB;
  });
  return run;
}

// The same leak in one line, collate.cpp:42, that is reached from `count` callers in turn.
inline SiteRun trainer_of_many_stacks(std::size_t count) {
  SiteRun run;
  run.add_process(trainer_record());
  run.with_steps = true;
  const auto leaking = run.add_frame("collate(Batch&)", "/src/collate.cpp", 42);
  for (std::size_t i = 0; i < count; ++i) {
    const auto caller =
        run.add_frame("caller_" + std::to_string(i), "/src/main.cpp", static_cast<unsigned>(i + 1));
    run.add_site(trainer_record().key, {leaking, caller}, [=](double t_s) {
      const auto blocks = static_cast<std::uint64_t>(t_s * 10.0);
      return (blocks + i) / count * kSiteMiB;
    });
  }
  return run;
}

inline std::unique_ptr<check::CheckTracing> tracing_of(const SiteRun& run, std::size_t seconds) {
  auto tracing = std::make_unique<check::CheckTracing>();
  tracing->options.judge.warmup.steps = 100.0;
  for (const Tick& tick : run.ticks(seconds)) {
    (void)tracing->launch.add(tick);
  }
  tracing->conclude();
  return tracing;
}

inline check::CheckResult failing_check(const std::string& name = "train") {
  check::CheckResult result;
  result.spec.name = name;
  result.spec.command = {"python", "train.py"};
  result.status = check::CheckStatus::kFail;
  result.rows = {growth_row(tracker::BudgetState::kExceeded),
                 peak_row(tracker::BudgetState::kWithin)};
  result.runs = 1;
  check::CheckRun run;
  run.ending.command_status = 0;
  run.info.command = "python train.py";
  run.seconds = 12.5;
  run.track = leaking_run();
  result.shown = std::move(run);
  return result;
}

inline check::CheckResult passing_check() {
  check::CheckResult result = failing_check("eval");
  result.status = check::CheckStatus::kPass;
  result.rows = {peak_row(tracker::BudgetState::kWithin)};
  result.shown->track = stable_run();
  return result;
}

inline check::CheckResult undetermined_check() {
  check::CheckResult result = failing_check("short");
  result.status = check::CheckStatus::kUndetermined;
  tracker::BudgetRow row = growth_row(tracker::BudgetState::kUndetermined);
  row.doubt = tracker::BudgetDoubt::kStillGrowing;
  row.needs = tracker::Needs{{}, 40.0, {}};
  result.rows = {row};
  return result;
}

}  // namespace tidemark::tests
