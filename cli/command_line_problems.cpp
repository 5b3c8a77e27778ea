// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line_problems.h"

namespace tidemark::cli {
namespace {

int targets_given(const TargetOptions& target, bool has_dashes) {
  return (target.pids.empty() ? 0 : 1) + (target.find_training ? 1 : 0) + (target.system ? 1 : 0) +
         (has_dashes ? 1 : 0);
}

// Empty when the target is fine, else what is wrong with it.
std::string problem_with(const TargetOptions& target, bool has_dashes) {
  const int given = targets_given(target, has_dashes);
  if (has_dashes && target.command.empty()) {
    return "nothing stands after --";
  }
  if (given == 0) {
    return "say what to watch: --pid PID, --find-training, --system or -- COMMAND";
  }
  return given > 1 ? "--pid, --find-training, --system and -- COMMAND exclude each other" : "";
}

std::string problem_with(const WatchOptions& options) {
  if (!options.log_file.empty() && options.step_regex.empty()) {
    return "--log-file needs --step-regex to know what a step looks like";
  }
  if (!options.step_regex.empty() && options.log_file.empty() && options.target.command.empty()) {
    return "--step-regex reads the output of -- COMMAND; of a running process give its --log-file";
  }
  return "";
}

// Options that a recording has no use for.
bool is_for_watching(const WatchOptions& watch) {
  return watch.duration_ns || !watch.output.empty() || !watch.step_regex.empty() ||
         !watch.log_file.empty();
}

}  // namespace

std::string problem_with(const TrackOptions& options, bool has_dashes) {
  const WatchOptions& watch = options.watch;
  const int targets = targets_given(watch.target, has_dashes);
  if (options.input.empty()) {
    if (targets == 0) {
      return "say what to judge: a recording, --pid PID, --find-training, --system or -- COMMAND";
    }
    const std::string problem = problem_with(watch.target, has_dashes);
    return problem.empty() ? problem_with(watch) : problem;
  }
  if (targets > 0) {
    return "a recording and something to watch exclude each other";
  }
  return is_for_watching(watch)
             ? "--duration, --output, --step-regex and --log-file are for watching, "
               "not for a recording"
             : "";
}

std::string problem_with(const ProfileOptions& options, bool has_dashes) {
  const TargetOptions& target = options.watch.target;
  if (!options.input.empty()) {
    if (targets_given(target, has_dashes) > 0) {
      return "a recording and something to watch exclude each other";
    }
    const ProfileOptions usual;
    const bool is_tracing = options.mode != usual.mode ||
                            options.sample_every_bytes != usual.sample_every_bytes ||
                            options.follow_children != usual.follow_children ||
                            options.use_libunwind != usual.use_libunwind;
    return is_tracing || is_for_watching(options.watch)
               ? "--duration, --output, --step-regex, --log-file, --mode, --sample-every, "
                 "--no-follow and --unwinder are for a command, not for a recording"
               : "";
  }
  if (target.pids.size() > 1) {
    return "profile takes one --pid";
  }
  if (targets_given(target, has_dashes) == 0) {
    return "say what to profile: -- COMMAND, or a run file";
  }
  if (!target.pids.empty() && has_dashes) {
    return "--pid and -- COMMAND exclude each other";
  }
  const std::string problem = problem_with(target, has_dashes);
  return problem.empty() ? problem_with(options.watch) : problem;
}

std::string problem_with(const GuardOptions& options, bool has_dashes) {
  const WatchOptions& watch = options.track.watch;
  if (targets_given(watch.target, has_dashes) == 0) {
    return "say what to guard: --pid PID, --find-training or -- COMMAND";
  }
  if (options.restart && !has_dashes) {
    return "--restart needs -- COMMAND: a job that was started by others cannot be started again";
  }
  if (options.restart && watch.duration_ns) {
    return "--restart and --duration exclude each other";
  }
  if (options.track.limit_bytes &&
      options.keep_free.of(*options.track.limit_bytes) >= *options.track.limit_bytes) {
    return "--keep-free has to be less than --limit: the job would be stopped at once";
  }
  const std::string problem = problem_with(watch.target, has_dashes);
  return problem.empty() ? problem_with(watch) : problem;
}

std::string problem_with(const MonitorOptions& options, bool has_dashes) {
  if (options.replay.empty()) {
    const std::string problem = problem_with(options.watch.target, has_dashes);
    return problem.empty() ? problem_with(options.watch) : problem;
  }
  const WatchOptions& watch = options.watch;
  const WatchOptions usual;
  const bool is_watching = targets_given(watch.target, has_dashes) > 0 || watch.duration_ns ||
                           !watch.output.empty() || !watch.step_regex.empty() ||
                           !watch.log_file.empty() || watch.warn_growth || !watch.warn ||
                           watch.interval_ns != usual.interval_ns || watch.pss != usual.pss;
  return is_watching ? "--replay plays a recording: it takes nothing to watch, no --duration, "
                       "--output, --step-regex, --log-file, --interval, --pss or --warn-growth"
                     : "";
}

std::string problem_with(const CheckOptions& options, bool has_dashes) {
  if (has_dashes && options.command.empty()) {
    return "nothing stands after --";
  }
  if (has_dashes && options.names.size() > 1) {
    return "a command has one name";
  }
  int to_stdout = 0;
  for (const std::string* const path : {&options.junit, &options.markdown, &options.json}) {
    to_stdout += *path == "-" ? 1 : 0;
  }
  return to_stdout > 1 ? "only one report can go to the standard output" : "";
}

}  // namespace tidemark::cli
