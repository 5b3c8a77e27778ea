// SPDX-License-Identifier: Apache-2.0
// usage: dashboard_cost PROCESSES DAYS [WIDTH HEIGHT]
// What a dashboard keeps and draws, without the rest of the program: a tree of that many processes
// that has run for that long, in samples that were made up. Prints JSON with the share of a core
// that one minute takes (samples, verdicts and redraws, each every second) and the memory of this
// program.
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/clock.h"
#include "common/units.h"
#include "dashboard/layout.h"
#include "dashboard/live_judge.h"
#include "dashboard/model_builder.h"
#include "dashboard/terminal.h"

namespace {

using namespace tidemark;  // NOLINT(google-build-using-namespace)

Tick first_tick(int processes) {
  Tick tick;
  tick.tree.processes = static_cast<std::uint32_t>(processes);
  for (int i = 0; i < processes; ++i) {
    ProcessSample sample;
    sample.key = {1000 + i, 1};
    sample.rss_shmem_bytes = 0;
    sample.state = 'S';
    tick.processes.push_back(sample);
    ProcessRecord record;
    record.key = sample.key;
    record.ppid = i == 0 ? 1 : 1000;
    record.role = i == 0 ? Role::kTrainer : Role::kCompileWorker;
    record.argv = "python3 -m torch._inductor.compile_worker --pickler=x --kind=fork";
    tick.new_processes.push_back(std::move(record));
  }
  return tick;
}

void move_to(Tick& tick, double t_s) {
  tick.t_s = t_s;
  tick.step = static_cast<std::int64_t>(t_s);
  const auto noise = static_cast<std::uint64_t>(t_s * 2654435761.0) % (8 * kMiB);
  tick.tree.rss_bytes = 0;
  for (ProcessSample& sample : tick.processes) {
    sample.rss_anon_bytes = (sample.key.pid == 1000 ? 4000 * kMiB : 20 * kMiB) + noise;
    sample.rss_bytes = *sample.rss_anon_bytes + 50 * kMiB;
    tick.tree.rss_bytes += *sample.rss_bytes;
  }
  tick.tree.footprint_bytes = 8000 * kMiB + noise;
  tick.roles = {
      {Role::kTrainer, {1, 4050 * kMiB, 0, 4000 * kMiB + noise, false, {}, 0}},
      {Role::kCompileWorker, {tick.tree.processes - 1, 4000 * kMiB, 0, 4000 * kMiB, false, {}, 0}}};
}

double cpu_s() { return to_seconds(thread_cpu_ns()); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  const int processes = std::atoi(argv[1]);
  const double days = std::atof(argv[2]);
  const int width = argc > 4 ? std::atoi(argv[3]) : 200;
  const int height = argc > 4 ? std::atoi(argv[4]) : 60;

  dashboard::RunHistory history;
  dashboard::LiveJudge judge;
  RunInfo info;
  info.limit_bytes = 32'000 * kMiB;
  history.begin(info);
  judge.begin(info);
  const auto seconds = static_cast<std::int64_t>(days * 86400.0);
  // Everything that is kept is bounded and full long before the end of a week: of what is not
  // recent a sample in ten seconds fills it as well.
  constexpr std::int64_t kRecentS = 7200;
  Tick tick = first_tick(processes);
  for (std::int64_t s = 0; s < seconds; s += s < seconds - kRecentS ? 10 : 1) {
    move_to(tick, static_cast<double>(s));
    history.add(tick, {1000, 1});
    judge.add(tick);
    tick.new_processes.clear();
  }

  constexpr int kSeconds = 60;
  dashboard::FramePainter painter;
  std::optional<tracker::JudgedRun> judged;
  dashboard::ViewState state;
  state.flipped.insert(Role::kCompileWorker);
  double next_judgement = 0.0;
  double worst_judgement = 0.0;
  double draws = 0.0;
  std::size_t bytes = 0;
  double used = 0.0;
  for (int second = 0; second < kSeconds; ++second) {
    move_to(tick, static_cast<double>(seconds + second));
    const double begin = cpu_s();
    history.add(tick, {1000, 1});
    judge.add(tick);
    if (second >= next_judgement) {
      const double before = cpu_s();
      judged = tracker::judge_run(judge.tracks(), {});
      worst_judgement = std::max(worst_judgement, cpu_s() - before);
      next_judgement = dashboard::next_judgement_s(second, cpu_s() - before);
    }
    const double drawing = cpu_s();
    const dashboard::DashboardModel model = dashboard::build_model(history, judged, state, {});
    (void)dashboard::scene_of(model, dashboard::plan_layout(model, width, height));
    bytes +=
        painter.paint(dashboard::screen_lines(model, width, height, {true, true}), {width, height})
            .size();
    draws += cpu_s() - drawing;
    used += cpu_s() - begin;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{{\"core_share\":{:.4f},\"draw_ms\":{:.2f},\"judge_ms\":{:.1f},\"frame_bytes\":{},"
      "\"peak_rss_mib\":{:.1f}}}\n",
      used / kSeconds, draws / kSeconds * 1000.0, worst_judgement * 1000.0, bytes / kSeconds,
      static_cast<double>(usage.ru_maxrss) / 1024.0);
  return 0;
}
