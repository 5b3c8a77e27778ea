// SPDX-License-Identifier: Apache-2.0
#include "live/track.h"

#include <memory>

#include "cli/shared_options.h"

namespace tidemark::cli {
namespace {

std::string problem_with(const live::TrackOptions& options) {
  const int targets = targets_given(options.watch.target);
  if (options.judges_last) {
    return targets > 0 || !options.input.empty() || !option_for_watching(options.watch).empty()
               ? "--last judges the run that was watched last: it takes no recording and nothing "
                 "to "
                 "watch"
               : "";
  }
  if (options.input.empty()) {
    return targets > 0 ? watch_problem(options.watch)
                       : "say what to judge: a recording, --last, --pid PID, --find-training, "
                         "--system or -- COMMAND";
  }
  if (targets > 0) {
    return "a recording and something to watch exclude each other";
  }
  const std::string option = option_for_watching(options.watch);
  return option.empty() ? "" : option + " is for watching, not for a recording";
}

}  // namespace

void add_track(Program& program) {
  const auto options = std::make_shared<live::TrackOptions>();
  Command& command =
      program.add("track", "Warm-up, spikes or leak? Of a recording or of what runs");
  command.argument("FILE", "", options->input,
                   "A recording (run file, CSV, mprof, psrecord, JSON series); - reads stdin. A "
                   "number is a process id");
  command.flag("--last", options->judges_last,
               "Judge the run that was watched last on a terminal (kept without -o)");
  add_watch(command, options->watch);
  command.flag("--json", options->watch.json, "Print one JSON object at the end");
  add_judging(command, options->judge);
  add_limit(command, options->judge,
            "Memory that there is, for the forecast (default: cgroup, rlimit or machine)");
  command.flag(
      "--no-keep", [options] { options->keeps_run = false; },
      "Do not keep this run for tidemark track --last");
  command.footer(
      "Everything after -- is a command to start and watch. Exit codes: 0 no leak, 1 leak,\n"
      "3 the target failed or could not be read, 4 cannot tell yet.\n\n"
      "Examples:\n"
      "  tidemark track run.tidemark\n"
      "  tidemark track --last\n"
      "  tidemark track 27295 --duration 5min\n"
      "  tidemark track --find-training --duration 30min -o run.tidemark\n"
      "  tidemark track --warmup 200steps --step-regex 'Step +(\\d+)' -- python train.py\n"
      "  tidemark track --step-regex '^job (\\d+)' --log-file server.log --pid 1234");
  command.run_by([options] { return live::run_track(*options); },
                 [options] {
                   take_pid(options->input, options->watch.target);
                   return problem_with(*options);
                 });
}

}  // namespace tidemark::cli
