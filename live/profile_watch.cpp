// SPDX-License-Identifier: Apache-2.0
#include "live/profile_watch.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/messages.h"
#include "live/traced_launch.h"
#include "live/watch.h"
#include "profiler/reader/trace_directory.h"
#include "report/profile_report.h"
#include "report/profile_text.h"

namespace tidemark::live {
namespace {

class Profiling final : public WatchHandler {
 public:
  Profiling(const ProfileOptions& options, std::function<void(const Tick& tick)> on_tick)
      : options_(options), on_tick_(std::move(on_tick)), traced_(options) {}

  WatchPolicy policy() const override { return {.command = "profile"}; }
  std::unique_ptr<WatchView> make_view(LineWriter& lines) override;

  Status on_launch(LaunchOptions& launch) override { return traced_.prepare(launch); }
  void wake_in(const std::string& directory, pid_t pid) { traced_.wake_in(directory, pid); }

  void on_start(const RunInfo& info, WatchOutput& /*output*/) override { traced_.begin(info); }
  void add_to_tick(Tick& tick) override { traced_.complete(tick); }
  void on_tick(const Tick& tick, const monitor::Session& /*session*/) override {
    traced_.add(tick);
    if (on_tick_) {
      on_tick_(tick);
    }
  }
  void on_process_exit(const ProcessRecord& process) override { traced_.process_ended(process); }
  bool finish_watching() override { return traced_.finish(); }

  void on_end(const WatchEnding& ending, WatchOutput& output) override;
  int exit_code(const WatchEnding& ending) override {
    return ending.command_status && ending.own_code != kExitUsage ? *ending.command_status
                                                                  : ending.own_code;
  }

  report::ProfileReport report() const { return traced_.report(); }

 private:
  const ProfileOptions& options_;
  const std::function<void(const Tick& tick)> on_tick_;
  TracedLaunch traced_;
};

void Profiling::on_end(const WatchEnding& ending, WatchOutput& output) {
  if (ending.own_code == kExitOk && !traced_.has_traced()) {
    output.error("no process of the command could be traced",
                 "static programs, and those that run as another user, do not load the tracer; "
                 "tidemark track -- COMMAND judges their memory as a whole");
  }
}

// Lines now and then, and the report at the end.
class ProfileLines final : public WatchView {
 public:
  ProfileLines(const Profiling& profiling, const ProfileOptions& options, LineWriter& writer)
      : profiling_(profiling), options_(options), writer_(writer) {}

  void on_tick(const Tick& tick, const ProcessKey&, const ProcessLookup&) override {
    if (tick.t_s >= next_s_ && tick.t_s > 0.0) {
      show(tick.t_s);
    }
  }
  void on_end(const RunSummary& /*summary*/) override {
    erase();
    writer_.submit_always(
        '\n' +
        report::profile_text(profiling_.report(), report::style_for(lines_fd(), options_.plain)));
  }

 private:
  bool wraps_command() const { return !options_.watch.target.command.empty(); }
  int lines_fd() const { return wraps_command() ? STDERR_FILENO : STDOUT_FILENO; }
  // In place, where nothing of the command's comes in between.
  bool draws_in_place() const {
    return !options_.plain && ::isatty(lines_fd()) == 1 &&
           !(wraps_command() && ::isatty(STDOUT_FILENO) == 1);
  }
  void show(double t_s) {
    if (!draws_in_place()) {
      writer_.submit(report::profile_line(profiling_.report(), t_s));
      next_s_ = t_s + std::clamp(t_s / 10.0, 5.0, 600.0);
      return;
    }
    // What has scrolled out of the terminal cannot be drawn anew.
    const std::size_t rows =
        std::max<std::size_t>(report::terminal_rows(lines_fd()).value_or(24), 3);
    const std::string list = report::profile_list(
        profiling_.report(), t_s, report::terminal_columns(lines_fd()).value_or(81) - 1, rows - 2);
    erase();
    drawn_lines_ = static_cast<std::size_t>(std::count(list.begin(), list.end(), '\n'));
    writer_.submit(list);
    next_s_ = t_s + 1.0;
  }
  void erase() {
    if (drawn_lines_ > 0) {
      writer_.submit(fmt::format("\x1b[{}A\x1b[J", drawn_lines_));
      drawn_lines_ = 0;
    }
  }

  const Profiling& profiling_;
  const ProfileOptions& options_;
  LineWriter& writer_;
  std::size_t drawn_lines_ = 0;
  double next_s_ = 2.0;
};

class ProfileJson final : public WatchView {
 public:
  ProfileJson(const Profiling& profiling, LineWriter& writer)
      : profiling_(profiling), writer_(writer) {}

  void on_end(const RunSummary& /*summary*/) override {
    writer_.submit_always(report::profile_json(profiling_.report()) + '\n');
  }

 private:
  const Profiling& profiling_;
  LineWriter& writer_;
};

std::unique_ptr<WatchView> Profiling::make_view(LineWriter& lines) {
  if (options_.watch.json) {
    return std::make_unique<ProfileJson>(*this, lines);
  }
  return std::make_unique<ProfileLines>(*this, options_, lines);
}

}  // namespace

int watch_and_profile(const ProfileOptions& options,
                      std::function<void(const Tick& tick)> on_tick) {
  Profiling profiling(options, std::move(on_tick));
  if (!options.watch.target.pids.empty()) {
    const pid_t pid = options.watch.target.pids.front();
    const auto directory = reader::find_trace_of(pid, reader::trace_bases());
    if (!directory) {
      print_error(
          fmt::format("the tracer is not in process {}, and attaching to a running process is not "
                      "there yet",
                      pid),
          fmt::format("start it with tidemark profile -- COMMAND, or watch it as it is: tidemark "
                      "track --pid {}",
                      pid));
      return kExitUsage;
    }
    profiling.wake_in(*directory, pid);
  }
  return Watch(options.watch, profiling).run();
}

}  // namespace tidemark::live
