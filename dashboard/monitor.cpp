// SPDX-License-Identifier: Apache-2.0
#include "dashboard/monitor.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/exit_code.h"
#include "common/messages.h"
#include "common/text.h"
#include "dashboard/dashboard.h"
#include "live/job_output.h"
#include "live/kept_runs.h"
#include "live/last_looks.h"
#include "live/monitor_view.h"
#include "live/replay.h"
#include "live/target.h"
#include "live/watch.h"
#include "profiler/collect/collector_thread.h"
#include "recording/open.h"

namespace tidemark::dashboard {
namespace {

class Monitor final : public live::WatchHandler {
 public:
  // `setup`: of the dashboard; nullopt for lines.
  Monitor(bool json, std::optional<DashboardOptions> setup, live::LastLookOptions last_looks,
          std::int64_t interval_ns = kNsPerSecond)
      : json_(json), setup_(std::move(setup)), last_looks_(std::move(last_looks)) {
    if (setup_ && !setup_->replay_speed) {
      sites_.emplace(SystemClock().monotonic_ns(), interval_ns);
      setup_->take_end_of_profile = [this] { return sites_->take_end(); };
    }
  }

  Monitor(const Monitor&) = delete;  // what it has set up knows it
  Monitor& operator=(const Monitor&) = delete;

  live::WatchPolicy policy() const override {
    return {.command = "monitor", .reports_missing_gpu = !json_ && !setup_};
  }
  std::unique_ptr<live::WatchView> make_view(live::LineWriter& lines) override {
    if (setup_) {
      if (auto dashboard = make_dashboard_view(lines, *setup_)) {
        return dashboard;
      }
    }
    return json_ ? live::make_json_view(lines) : live::make_plain_view(lines);
  }
  void add_to_tick(Tick& tick) override {
    if (sites_) {
      sites_->complete(tick);
    }
    last_looks_.add_to_tick(tick);
    if (const auto note = last_looks_.take_note(); note && output_ != nullptr) {
      output_->note(*note);
    }
  }
  void on_start(const RunInfo& /*info*/, live::WatchOutput& output) override { output_ = &output; }
  std::vector<RecordingSink*> sinks() override { return {&last_looks_.sink()}; }
  bool finish_watching() override { return last_looks_.end(); }
  void on_end(const live::WatchEnding& /*ending*/, live::WatchOutput& output) override {
    const std::string text = last_looks_.report();
    std::string_view rest = text;
    while (const auto line = next_line(rest)) {
      output.note(*line);
    }
  }
  // Transparent around a command.
  int exit_code(const live::WatchEnding& ending) override {
    command_has_run_ = ending.command_status.has_value();
    return ending.command_status.value_or(ending.own_code);
  }
  // Known at the end.
  bool command_has_run() const { return command_has_run_; }

 private:
  bool json_;
  std::optional<DashboardOptions> setup_;
  live::LastLooks last_looks_;
  live::WatchOutput* output_ = nullptr;  // while it runs
  bool command_has_run_ = false;
  std::optional<collect::LiveSites> sites_;  // of the dashboard, unless it plays a recording
};

DashboardOptions setup_of(const MonitorOptions& options) {
  DashboardOptions setup;
  setup.judge = options.judge;
  return setup;
}

// Of all processes of the machine none is the job.
live::LastLookOptions last_looks_of(const MonitorOptions& options) {
  live::LastLookOptions looks;
  looks.is_on = options.last_look && options.replay.empty() && !options.watch.target.system;
  looks.named = options.watch.target.pids;
  looks.judge = options.judge;
  return looks;
}

bool judges(const MonitorOptions& options) {
  return options.judge.metric || options.judge.min_leak || !options.judge.warmup.automatic();
}

int replay_recording(const MonitorOptions& options, bool has_dashboard) {
  DashboardOptions setup = setup_of(options);
  setup.replay_speed = options.speed;
  if (recording::is_run_file(options.replay)) {
    setup.run_file = options.replay;
  }
  Monitor monitor(options.watch.json,
                  has_dashboard ? std::optional(std::move(setup)) : std::nullopt,
                  last_looks_of(options));
  return live::replay(options.replay, options.speed,
                      [&](live::LineWriter& lines) { return monitor.make_view(lines); });
}

int watch_in_dashboard(const MonitorOptions& options, live::WatchOptions watch,
                       std::string command_output) {
  watch.command_output = std::move(command_output);
  DashboardOptions setup = setup_of(options);
  setup.can_mark = true;
  setup.can_signal = true;
  setup.target = live::judged_target(watch.target, /*is_over=*/false);
  setup.output_path = watch.command_output;
  setup.run_file = watch.output;
  Monitor monitor(false, std::move(setup), last_looks_of(options), watch.interval_ns);
  const int code = live::watch(watch, monitor);
  struct stat written {};
  const bool is_empty = ::stat(watch.command_output.c_str(), &written) == 0 && written.st_size == 0;
  if (!watch.command_output.empty() && (is_empty || !monitor.command_has_run())) {
    (void)::unlink(watch.command_output.c_str());  // there is nothing to read in it
  } else if (!watch.command_output.empty()) {
    print_note("the output of the command is in " + watch.command_output);
  }
  return code;
}

int watch_in_lines(const MonitorOptions& options, const live::WatchOptions& watch) {
  Monitor monitor(watch.json, std::nullopt, last_looks_of(options));
  return live::watch(watch, monitor);
}

}  // namespace

int run_monitor(const MonitorOptions& options) {
  const bool has_dashboard = !options.plain && !options.watch.json && dashboard_is_possible();
  if (!has_dashboard && judges(options)) {
    print_note(
        "note: --metric, --warmup and --min-leak are for the verdict of the dashboard; tidemark "
        "track gives one without");
  }
  if (!options.replay.empty()) {
    return replay_recording(options, has_dashboard);
  }
  std::string command_output;
  if (has_dashboard && !options.watch.target.command.empty()) {
    auto path = live::make_command_output(options.watch.output);
    if (!path) {
      print_error(path.error());
      return kExitTarget;
    }
    command_output = *std::move(path);
  }
  live::WatchOptions watch = options.watch;
  const auto kept = options.keeps_run ? live::keep_run(watch) : std::nullopt;
  const int code = has_dashboard ? watch_in_dashboard(options, watch, std::move(command_output))
                                 : watch_in_lines(options, watch);
  if (kept) {
    kept->trim(watch.output);
  }
  return code;
}

}  // namespace tidemark::dashboard
