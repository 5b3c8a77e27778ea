// SPDX-License-Identifier: Apache-2.0
#include "cli/monitor.h"

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/command_output.h"
#include "cli/exit_code.h"
#include "cli/live_sites.h"
#include "cli/messages.h"
#include "cli/monitor_dashboard.h"
#include "cli/monitor_view.h"
#include "cli/replay.h"
#include "cli/watch.h"
#include "common/clock.h"
#include "recording/open.h"

namespace tidemark::cli {
namespace {

class Monitor final : public WatchUser {
 public:
  // `setup`: of the dashboard; nullopt for lines.
  Monitor(bool json, std::optional<DashboardSetup> setup, std::int64_t interval_ns = kNsPerSecond)
      : json_(json), setup_(std::move(setup)) {
    if (setup_ && !setup_->replay_speed) {
      sites_.emplace(SystemClock().monotonic_ns(), interval_ns);
      setup_->take_end_of_profile = [this] { return sites_->take_end(); };
    }
  }

  Monitor(const Monitor&) = delete;  // what it has set up knows it
  Monitor& operator=(const Monitor&) = delete;

  std::string_view name() const override { return "monitor"; }
  std::unique_ptr<WatchView> make_view(LineWriter& lines) override {
    if (setup_) {
      if (auto dashboard = make_dashboard_view(lines, *setup_)) {
        return dashboard;
      }
    }
    return json_ ? make_json_view(lines) : make_plain_view(lines);
  }
  void complete(Tick& tick) override {
    if (sites_) {
      sites_->complete(tick);
    }
  }
  bool tells_of_no_gpu() const override { return !json_ && !setup_; }
  // Transparent around a command.
  int exit_code(const WatchEnding& ending) override {
    command_has_run_ = ending.command_status.has_value();
    return ending.command_status.value_or(ending.own_code);
  }
  // Known at the end.
  bool command_has_run() const { return command_has_run_; }

 private:
  bool json_;
  std::optional<DashboardSetup> setup_;
  bool command_has_run_ = false;
  std::optional<LiveSites> sites_;  // of the dashboard, unless it plays a recording
};

DashboardSetup setup_of(const MonitorOptions& options) {
  DashboardSetup setup;
  setup.warmup = options.warmup;
  setup.min_leak = options.min_leak;
  setup.metric = options.metric;
  return setup;
}

bool judges(const MonitorOptions& options) {
  return options.metric || options.min_leak || !options.warmup.automatic();
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
    DashboardSetup setup = setup_of(options);
    setup.replay_speed = options.speed;
    if (recording::is_run_file(options.replay)) {
      setup.run_file = options.replay;
    }
    Monitor monitor(options.watch.json,
                    has_dashboard ? std::optional(std::move(setup)) : std::nullopt);
    return replay(options.replay, options.speed,
                  [&](LineWriter& lines) { return monitor.make_view(lines); });
  }
  if (!has_dashboard) {
    Monitor monitor(options.watch.json, std::nullopt);
    return Watch(options.watch, monitor).run();
  }
  WatchOptions watch = options.watch;
  if (!watch.target.command.empty()) {
    auto path = make_command_output(watch.output);
    if (!path) {
      print_error(path.error());
      return kExitTarget;
    }
    watch.command_output = *std::move(path);
  }
  DashboardSetup setup = setup_of(options);
  setup.can_mark = true;
  setup.output_path = watch.command_output;
  setup.run_file = watch.output;
  Monitor monitor(false, std::move(setup), watch.interval_ns);
  const int code = Watch(watch, monitor).run();
  if (!watch.command_output.empty() && !monitor.command_has_run()) {
    (void)::unlink(watch.command_output.c_str());  // nobody has written to it, nor will
  } else if (!watch.command_output.empty()) {
    print_note("the output of the command is in " + watch.command_output);
  }
  return code;
}

}  // namespace tidemark::cli
