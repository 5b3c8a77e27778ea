// SPDX-License-Identifier: Apache-2.0
#include "dashboard/monitor.h"

#include <memory>

#include "cli/shared_options.h"
#include "common/text.h"
#include "common/units.h"

namespace tidemark::cli {
namespace {

using dashboard::MonitorOptions;

// "20x" or "20".
Result<double> parse_speed(std::string_view text) {
  constexpr double kFastest = 1e6;
  const std::string_view number = text.ends_with('x') ? text.substr(0, text.size() - 1) : text;
  const auto speed = parse_number<double>(number);
  if (!speed || !(*speed > 0.0 && *speed <= kFastest)) {
    return Error{Errc::kUsage, "--speed is a factor such as 20x, not '" + escape_text(text) + "'"};
  }
  return *speed;
}

Status take_warn_growth(const std::string& text, live::WatchOptions& watch) {
  if (text == "off") {
    watch.warn = false;
    return ok();
  }
  const auto rate = parse_rate(text);
  if (!rate) {
    return rate.error();
  }
  watch.warn_growth = *rate;
  return ok();
}

std::string problem_with(const MonitorOptions& options) {
  const live::WatchOptions& watch = options.watch;
  if (options.replay.empty()) {
    return watch_problem(watch);
  }
  std::string option = option_for_watching(watch);
  if (option.empty() && (watch.warn_growth || !watch.warn)) {
    option = "--warn-growth";
  }
  if (targets_given(watch.target) > 0) {
    option = "process or command to watch";
  }
  return option.empty() ? "" : "--replay plays a recording: it takes no " + option;
}

}  // namespace

void add_monitor(Program& program) {
  const auto options = std::make_shared<MonitorOptions>();
  Command& command =
      program.add("monitor", "Watch a process tree: memory by process, role and in total");
  command.process_ids("PID", options->watch.target.pids, "The same as --pid");
  add_watch(command, options->watch);
  const Option json =
      command.flag("--json", options->watch.json, "Print one JSON object per sample and event");
  command.flag("--plain", options->plain, "Print lines (the default where there is no terminal)")
      .excludes(json);
  const Option replay =
      command.text("--replay", "FILE", options->replay, "Play a recording instead of watching");
  command.value("--speed", "N", parse_speed, options->speed, "How fast to play it (default 20x)")
      .needs(replay);
  command.flag(
      "--no-keep", [options] { options->keeps_run = false; },
      "Do not keep this run for tidemark track --last");
  add_last_look(command, [options](bool is_on) { options->last_look = is_on; });
  add_judging(command, options->judge);
  command.value(
      "--warn-growth", "RATE",
      [options](const std::string& text) { return take_warn_growth(text, options->watch); },
      "Warn when the tree grows faster, for example 200MB/10s or 1MiB/step "
      "(default: 5 % of the limit per minute; off)");
  command.footer(
      "On a terminal this is a dashboard, with a verdict by --metric, --warmup and --min-leak; ? "
      "shows its keys.\n"
      "The last runs that were watched on a terminal without -o are kept: tidemark track --last.\n"
      "Everything after -- is a command to start and watch; its exit status is passed on.\n\n"
      "Examples:\n"
      "  tidemark monitor --find-training -o run.tidemark\n"
      "  tidemark monitor --pid 1234 --duration 5min\n"
      "  tidemark monitor --replay run.tidemark --speed 20x\n"
      "  tidemark monitor --step-regex 'Step +(\\d+)' -- python train.py\n"
      "  tidemark monitor --step-regex '^job (\\d+)' --log-file server.log --pid 1234");
  command.run_by([options] { return dashboard::run_monitor(*options); },
                 [options] { return problem_with(*options); });
}

}  // namespace tidemark::cli
