// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/records.h"
#include "common/units.h"
#include "dashboard/live_judge.h"
#include "dashboard/model_builder.h"
#include "dashboard/run_history.h"

// A run for the dashboard: a wrapper, a trainer that leaks, twenty compile workers.
namespace tidemark::tests {

inline constexpr ProcessKey kWrapper{100, 1};
inline constexpr ProcessKey kTrainer{110, 2};
inline constexpr pid_t kFirstWorker = 200;
inline constexpr int kWorkers = 20;

inline ProcessRecord record_of(const ProcessKey& key, pid_t parent, Role role,
                               const std::string& argv) {
  ProcessRecord record;
  record.key = key;
  record.ppid = parent;
  record.role = role;
  record.argv = argv;
  record.comm = argv.substr(0, argv.find(' '));
  return record;
}

inline ProcessSample sample_of(const ProcessKey& key, std::uint64_t mib) {
  ProcessSample sample;
  sample.key = key;
  sample.rss_bytes = (mib + 50) * kMiB;
  sample.rss_anon_bytes = mib * kMiB;
  sample.rss_file_bytes = 50 * kMiB;
  sample.rss_shmem_bytes = 0;
  sample.swap_bytes = 0;
  sample.pss_bytes = (mib + 10) * kMiB;
  sample.uss_bytes = mib * kMiB;
  sample.pss_age_s = 7.0;
  sample.threads = 12;
  sample.state = 'S';
  return sample;
}

inline RunInfo dashboard_info() {
  RunInfo info;
  info.limit_bytes = 32'768 * kMiB;
  info.limit_source = "cgroup v2 /user.slice";
  info.interval_s = 1.0;
  return info;
}

// Second `second` of the run: the trainer holds 300 MiB and 1 MiB more each second, with a spike of
// 64 MiB every tenth; five steps a second.
inline Tick dashboard_tick(int second, int workers = kWorkers) {
  Tick tick;
  tick.t_s = second;
  tick.step = second * 5;
  const std::uint64_t trainer_mib =
      300 + static_cast<std::uint64_t>(second) + (second % 10 == 5 ? 64 : 0);
  tick.processes = {sample_of(kWrapper, 1), sample_of(kTrainer, trainer_mib)};
  if (second == 0) {
    tick.new_processes = {record_of(kWrapper, 1, Role::kWrapper, "uv run train.py"),
                          record_of(kTrainer, 100, Role::kTrainer, "python3 train.py --epochs 3")};
  }
  for (int i = 0; i < workers; ++i) {
    const ProcessKey key{kFirstWorker + i, 3};
    tick.processes.push_back(sample_of(key, 20));
    if (second == 0) {
      tick.new_processes.push_back(
          record_of(key, 110, Role::kCompileWorker, "python3 -m torch._inductor.compile_worker"));
    }
  }
  const auto count = static_cast<std::uint32_t>(workers);
  const std::uint64_t workers_mib = 100;  // together, shared pages once
  tick.tree = {2 + count, (trainer_mib + 101 + count * 70U) * kMiB,
               0,         (trainer_mib + 1 + workers_mib) * kMiB,
               false,     {},
               0};
  tick.roles = {
      {Role::kTrainer, {1, (trainer_mib + 50) * kMiB, 0, trainer_mib * kMiB, false, {}, 0}},
      {Role::kWrapper, {1, 51 * kMiB, 0, 1 * kMiB, false, {}, 0}},
      {Role::kCompileWorker,
       {count, count * 70U * kMiB, 0, workers_mib * kMiB, false, 150 * kMiB, 0}}};
  if (second % 60 == 0) {
    tick.epoch = second / 60;
    tick.markers.push_back({tick.t_s, kTrainer, MarkerKind::kEpoch, second / 60, {}});
    tick.markers.push_back({tick.t_s, kTrainer, MarkerKind::kPhaseBegin, 0, "train"});
  }
  if (second % 60 == 50) {
    tick.markers.push_back({tick.t_s, kTrainer, MarkerKind::kPhaseEnd, 0, "train"});
    tick.markers.push_back({tick.t_s, kTrainer, MarkerKind::kPhaseBegin, 0, "eval"});
  }
  if (second % 60 == 59) {
    tick.markers.push_back({tick.t_s, kTrainer, MarkerKind::kPhaseEnd, 0, "eval"});
  }
  if (second == 120) {
    tick.events.push_back({tick.t_s, EventKind::kWarnGrowth, {}, "grew by 64 MiB in 1 s"});
  }
  return tick;
}

struct SampleRun {
  dashboard::RunHistory history;
  std::optional<tracker::JudgedRun> judged;
};

inline SampleRun sample_dashboard_run(int seconds) {
  SampleRun run;
  dashboard::LiveJudge judge;
  run.history.begin(dashboard_info());
  judge.begin(dashboard_info());
  for (int second = 0; second <= seconds; ++second) {
    const Tick tick = dashboard_tick(second);
    run.history.add(tick, kTrainer);
    judge.add(tick);
  }
  run.judged = tracker::judge_run(judge.tracks(), {});
  return run;
}

inline dashboard::DashboardModel sample_dashboard(const dashboard::ViewState& state = {},
                                                  const dashboard::ScreenInputs& around = {}) {
  const SampleRun run = sample_dashboard_run(240);
  return dashboard::build_model(run.history, run.judged, state, around);
}

// The text over the screen, each line after a line end.
inline std::string words_of(const std::optional<dashboard::OverlayModel>& overlay) {
  std::string words;
  if (overlay) {
    for (const dashboard::OverlayLine& line : overlay->lines) {
      words += '\n' + line.label + line.text;
    }
  }
  return words;
}

// What an import of steps and RSS yields: one process without a pid, 1 MiB more each step.
inline SampleRun steps_only_run(int steps) {
  RunInfo info;
  info.time_is_steps = true;
  SampleRun run;
  dashboard::LiveJudge judge;
  run.history.begin(info);
  judge.begin(info);
  for (int step = 0; step <= steps; ++step) {
    Tick tick;
    tick.t_s = step;
    tick.step = step;
    tick.processes.emplace_back().rss_bytes = (300 + static_cast<std::uint64_t>(step)) * kMiB;
    tick.tree.processes = 1;
    tick.tree.rss_bytes = *tick.processes[0].rss_bytes;
    tick.roles = {{Role::kTrainer, tick.tree}};
    if (step == 0) {
      tick.new_processes.emplace_back().role = Role::kTrainer;
    }
    if (step % 600 == 599) {
      tick.epoch = step / 600;
      tick.markers.push_back({tick.t_s, {}, MarkerKind::kEpoch, step / 600, {}});
    }
    run.history.add(tick, {});
    judge.add(tick);
  }
  run.judged = tracker::judge_run(judge.tracks(), {});
  return run;
}

}  // namespace tidemark::tests
