// SPDX-License-Identifier: Apache-2.0
#include "live/profile.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/exit_code.h"
#include "common/io.h"
#include "common/messages.h"
#include "common/text.h"
#include "common/units.h"
#include "live/attach_targets.h"
#include "live/traced_launch.h"
#include "live/watch.h"
#include "profiler/collect/attached.h"
#include "recording/open.h"
#include "report/output.h"
#include "report/profile_report.h"
#include "report/profile_text.h"
#include "tracker/sites/site_tracks.h"

namespace tidemark::live {
namespace {

class Profiling final : public WatchHandler {
 public:
  explicit Profiling(const ProfileOptions& options) : options_(options), traced_(options) {}

  WatchPolicy policy() const override { return {.command = "profile"}; }
  std::unique_ptr<WatchView> make_view(LineWriter& lines) override;

  Status on_launch(LaunchOptions& launch) override { return traced_.prepare(launch); }
  Result<std::vector<std::string>> attach(const AttachTargets& targets) {
    return traced_.attach(targets);
  }

  std::vector<RecordingSink*> sinks() override { return {&traced_}; }
  void add_to_tick(Tick& tick) override { traced_.complete(tick); }
  bool finish_watching() override { return traced_.finish(); }

  void on_end(const WatchEnding& ending, WatchOutput& output) override;
  int exit_code(const WatchEnding& ending) override;

  report::ProfileReport report() const {
    report::ProfileReport report = traced_.report();
    report.by = options_.by;
    return report;
  }

 private:
  const ProfileOptions& options_;
  TracedLaunch traced_;
};

void Profiling::on_end(const WatchEnding& ending, WatchOutput& output) {
  if (ending.own_code == kExitOk && !traced_.has_traced()) {
    output.error("no process of the command could be traced",
                 "static programs, and those that run as another user, do not load the tracer; "
                 "tidemark track -- COMMAND judges their memory as a whole");
  }
}

// Of a process that was there already: whether the answer is about all that grew.
int Profiling::exit_code(const WatchEnding& ending) {
  if (ending.command_status && ending.own_code != kExitUsage) {
    return *ending.command_status;
  }
  return ending.own_code == kExitOk && report::has_unseen_growth(report()) ? kExitUndetermined
                                                                           : ending.own_code;
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
  double next_s_ = 1.0;
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

int profile_recording(const ProfileOptions& options) {
  auto reader = recording::open_recording(options.input);
  if (!reader) {
    print_error(reader.error());
    return kExitTarget;
  }
  tracker::SiteTrackBuilder builder;
  const auto summary = (*reader)->read(builder);
  if (!summary) {
    print_error(summary.error());
  } else {
    report::print_read_notes(*summary);
  }
  if (builder.sites().empty()) {
    print_error(fmt::format("{} has no allocation sites", escape_text(options.input)),
                "tidemark profile -o FILE -- COMMAND records them; tidemark track FILE judges it");
    return kExitTarget;
  }
  report::ProfileReport report = report::make_report(builder.sites(), options.judge, options.top);
  report.by = options.by;
  report.command = (*reader)->info().command;
  const std::string text =
      options.watch.json
          ? report::profile_json(report) + '\n'
          : report::profile_text(report, report::style_for(STDOUT_FILENO, options.plain));
  if (const Status written = write_all(STDOUT_FILENO, text); !written) {
    print_error(written.error());
    return kExitTarget;
  }
  if (!summary) {
    return kExitTarget;
  }
  return report::has_unseen_growth(report) ? kExitUndetermined : kExitOk;
}

int detach_from(pid_t pid) {
  if (const Status done = collect::detach_from(pid); !done) {
    print_error(done.error());
    return kExitTarget;
  }
  print_note(fmt::format("the tracer no longer does anything in pid {}", pid));
  return kExitOk;
}

// Attaches to the processes that are wanted, or wakes the tracer that sleeps in them. An exit code.
int begin_in_running(const ProfileOptions& options, Profiling& profiling, WatchSystem* system) {
  const auto source = system == nullptr ? monitor::make_procps_source() : system->open_processes();
  if (!source) {
    print_error(source.error());
    return kExitTarget;
  }
  const auto targets = attach_targets(options.watch.target, options.scope, **source);
  if (!targets) {
    print_error(targets.error(), targets.error().code == Errc::kUsage
                                     ? "give the process id of one of them, or --all"
                                     : "");
    return kExitTarget;
  }
  const auto done = profiling.attach(*targets);
  if (!done) {
    const pid_t pid = targets->wanted.front();
    print_error(fmt::format("cannot attach to pid {}: {}{}", pid, done.error().what,
                            targets->wanted.size() == 1
                                ? ""
                                : fmt::format("; nor to {}",
                                              format_count(targets->wanted.size() - 1,
                                                           "more process", "more processes"))),
                collect::attach_hint(done.error(), pid));
    return kExitTarget;
  }
  for (const std::string& note : *done) {
    print_note(note);
  }
  return kExitOk;
}

}  // namespace

int run_profile(const ProfileOptions& options, WatchSystem* system) {
  if (options.detach) {
    return detach_from(*options.detach);
  }
  if (!options.input.empty()) {
    return profile_recording(options);
  }
  // Until watching takes them: at no time may Ctrl-C end us with the tracer left in a process.
  std::optional<collect::StopSignals> signals;
  if (options.watch.target.command.empty()) {
    signals.emplace(collect::StopSignals::Also::kNothing);
  }
  Profiling profiling(options);
  if (options.watch.target.command.empty()) {
    if (const int failed = begin_in_running(options, profiling, system); failed != kExitOk) {
      return failed;
    }
  }
  return watch(options.watch, profiling, system);
}

}  // namespace tidemark::live
