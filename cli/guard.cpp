// SPDX-License-Identifier: Apache-2.0
#include "guard/guard.h"

#include <memory>

#include "cli/shared_options.h"
#include "common/units.h"

namespace tidemark::cli {
namespace {

using guard::GuardOptions;

std::string problem_with(const GuardOptions& options) {
  const live::WatchOptions& watch = options.track.watch;
  if (targets_given(watch.target) == 0) {
    return "say what to guard: --pid PID, --find-training or -- COMMAND";
  }
  if (options.restart && watch.target.command.empty()) {
    return "--restart needs -- COMMAND: a job that was started by others cannot be started again";
  }
  if (options.restart && watch.duration_ns) {
    return "--restart and --duration exclude each other";
  }
  const auto limit_bytes = options.track.judge.limit_bytes;
  if (limit_bytes && options.keep_free.of(*limit_bytes) >= *limit_bytes) {
    return "--keep-free has to be less than --limit: the job would be stopped at once";
  }
  return watch_problem(watch);
}

// How the guard is to act.
void add_actions(Command& command, GuardOptions& options) {
  command.value("--keep-free", "SIZE", parse_size_bytes, options.keep_free.bytes,
                "Act when less is free below a limit (default: 5 % of the limit, at most 2GiB)");
  command.value("--horizon", "TIME", parse_duration_ns, options.settings.horizon_ns,
                "Act when it leaks and the limit comes sooner (default 2min)");
  command.value("--signal", "NAME", guard::parse_signal, options.signal_number,
                "What the trainer gets first (default TERM)");
  command.value("--grace", "TIME", parse_duration_ns, options.settings.grace_ns,
                "Time for its checkpoint, then the tree is killed (default 2min)");
  command.text("--notify", "COMMAND", options.notify,
               "Run this in a shell for every action; TIDEMARK_TEXT and others say what it was");
  command.flag("--desktop", options.desktop, "Show every action on the desktop (notify-send)");
  command.flag("--dry-run", options.dry_run, "Only say what would be done");
  add_last_look(command, [&](bool is_on) { options.last_look = is_on; });
  const Option restart = command.flag(
      "--restart", options.restart,
      "Start the command again after it was stopped; it has to resume its checkpoint by itself");
  command
      .number("--max-restarts", options.max_restarts, 1, 10000,
              "At most so many times (default 10)")
      .needs(restart);
}

}  // namespace

void add_guard(Program& program) {
  const auto options = std::make_shared<GuardOptions>();
  Command& command =
      program.add("guard", "Stop a job, with a checkpoint, before the kernel kills it");
  command.process_ids("PID", options->track.watch.target.pids, "The same as --pid");
  add_watch(command, options->track.watch);
  command.remove("--system");  // it acts on one job
  add_limit(command, options->track.judge,
            "What the job may use, beside the limits of cgroup, rlimit and machine");
  add_actions(command, *options);
  add_thresholds(command, options->track.judge);
  command.footer(
      "Everything after -- is a command to start and guard. Exit codes: the command's own,\n"
      "1 when the guard stopped it for good, 3 when it cannot be guarded. docs/guard.md\n"
      "tells the rest.\n\n"
      "Examples:\n"
      "  tidemark guard --restart -o night.tidemark -- python train.py --resume last.pt\n"
      "  tidemark guard --pid 1234 --keep-free 4GiB --notify 'mail -s \"$TIDEMARK_TEXT\" me'\n"
      "  tidemark guard --find-training --dry-run");
  command.run_by([options] { return guard::run_guard(*options); },
                 [options] { return problem_with(*options); });
}

}  // namespace tidemark::cli
